------------------------------ MODULE Instance ------------------------------
(***************************************************************************)
(* Several jobs on shared ranks: the way of a rank from a job through      *)
(* housekeeping back to the scheduler, and on to the next job.             *)
(*                                                                         *)
(* Each job is a PartialRelease.  Its events say here what becomes of it,  *)
(* and there why they may happen.  What a job hands over goes to           *)
(* *housekeeping*, which runs a script on each rank, and gives the ranks   *)
(* that have completed to the *scheduler* by `sched.free', all at once or  *)
(* some at a time; the last one says `final'.  It is sent, and taken, in   *)
(* the step that causes it.                                                *)
(*                                                                         *)
(* At any moment the scheduler may be reloaded, or the job manager         *)
(* restarted.  The scheduler then believes what the *hello* tells it: one  *)
(* response a job, with R and the ranks of R that are free.                *)
(***************************************************************************)

CONSTANTS Jobs,
          Ranks,        \* the ranks that all jobs share
          Epilogs,      \* the descriptions of a job's epilogs
          OffNode,      \* the jobs whose R has an off-node part, which goes with `final'
          LastRank,     \* may a job's last held rank go while a holder is active?
          ReleaseAfter, \* when do completed ranks go to the scheduler: with the last, "now", or after a time?
          PartialOk,    \* does the scheduler understand a hello that says which ranks are free?
          Fluxion       \* does the scheduler forget a job when its last rank comes back without `final'?

ASSUME /\ OffNode \subseteq Jobs
       /\ LastRank \in {"keep", "defer", "with-last"}
       /\ ReleaseAfter \in {"unset", "now", "timer"}
       /\ PartialOk \in BOOLEAN
       /\ Fluxion \in BOOLEAN

VARIABLES job,          \* each job's state: the variables of PartialRelease
          hk,           \* each job's housekeeping
          sched         \* what the scheduler believes of each job

vars == <<job, hk, sched>>

Job(j) == INSTANCE PartialRelease
            WITH Prologs    <- {},
                 phase      <- job[j].phase,
                 exec       <- job[j].exec,
                 execRanks  <- job[j].execRanks,
                 actions    <- job[j].actions,
                 allocation <- job[j].allocation,
                 held       <- job[j].held,
                 released   <- job[j].released,
                 closed     <- job[j].closed

Housekeeping ==
  [running : SUBSET Ranks,              \* handed over; the script runs
   done    : SUBSET Ranks,              \* completed, and not yet given to the scheduler
   freed   : SUBSET Ranks,              \* given to the scheduler
   timer   : {"off", "on", "expired"},
   closing : BOOLEAN,                   \* no further hand-over will come
   final   : BOOLEAN]                   \* the last `sched.free' was sent

Belief ==
  [allocated : SUBSET Ranks,            \* the ranks that the job has
   offNode   : BOOLEAN]                 \* does the job have its off-node part?

TypeOK ==
  /\ \A j \in Jobs : Job(j)!TypeOK
  /\ hk \in [Jobs -> Housekeeping]
  /\ sched \in [Jobs -> Belief]

Init ==
  /\ job = [j \in Jobs |-> [phase |-> "-", exec |-> "idle", execRanks |-> {}, actions |-> [a \in {} |-> {}],
                            allocation |-> {}, held |-> {}, released |-> {}, closed |-> FALSE]]
  /\ \A j \in Jobs : Job(j)!Init
  /\ hk = [j \in Jobs |-> [running |-> {}, done |-> {}, freed |-> {},
                           timer |-> "off", closing |-> FALSE, final |-> FALSE]]
  /\ sched = [j \in Jobs |-> [allocated |-> {}, offNode |-> FALSE]]

-----------------------------------------------------------------------------
(* What housekeeping gives to the scheduler, as soon as it may. *)

(* A job's ranks may come back in parts only if a hello can tell the scheduler of such a job. *)
\* PR-39
InParts == PartialOk

\* PR-39
Policy == IF InParts THEN ReleaseAfter ELSE "unset"

(* Every rank that will come has come, and has completed. *)
Ends(h) == h.closing /\ h.running = {}

(* What has completed goes at once, or when the time is over, or at the end. *)
\* PR-32
Goes(h) == IF Policy = "now" \/ h.timer = "expired" \/ Ends(h) THEN h.done ELSE {}

(* The scheduler takes ranks, and with `final' the off-node part; but Fluxion not of a job that it has forgotten. *)
\* PR-35
Taken(belief, ranks, final) ==
  [allocated |-> belief.allocated \ ranks,
   offNode   |-> belief.offNode /\ (final => Fluxion /\ belief.allocated = {})]

(* An event has made the job's housekeeping h; what may go to the scheduler goes, and with the end the timer stops. *)
\* PR-34
Flush(j, h) ==
  /\ hk' = [hk EXCEPT ![j] = [h EXCEPT !.done  = @ \ Goes(h),
                                     !.freed = @ \cup Goes(h),
                                     !.timer = IF Ends(h) THEN "off" ELSE @,
                                     !.final = Ends(h)]]
  /\ sched' = [sched EXCEPT ![j] = Taken(@, Goes(h), Ends(h))]

(* The job manager hands ranks over to housekeeping. *)
HandOver(j, ranks, last) ==
  Flush(j, [hk[j] EXCEPT !.running = @ \cup ranks, !.closing = last])

-----------------------------------------------------------------------------
(* The events of a job. *)

(* The job is submitted, and soon awaits its allocation. *)
Submit(j) ==
  /\ job' = [job EXCEPT ![j].phase = "NEW"]
  /\ Job(j)!Submit
  /\ UNCHANGED <<hk, sched>>

(* The scheduler allocates ranks that it believes to be free of any job. *)
Alloc(j, R) ==
  /\ \A k \in Jobs : R \cap sched[k].allocated = {}
  /\ LET cancelled == job[j].phase = "CLEANUP"
     IN job' = [job EXCEPT ![j].phase      = IF cancelled THEN @ ELSE "RUN",
                           ![j].exec       = IF cancelled THEN @ ELSE "requested",
                           ![j].execRanks  = IF cancelled THEN @ ELSE R,
                           ![j].actions    = Job(j)!Within(R),
                           ![j].allocation = R,
                           ![j].held       = R]
  /\ Job(j)!Alloc(R)
  /\ sched' = [sched EXCEPT ![j] = [allocated |-> R, offNode |-> j \in OffNode]]
  /\ UNCHANGED hk

(* The shells have started. *)
Start(j) ==
  /\ job' = [job EXCEPT ![j].exec = "running"]
  /\ Job(j)!Start
  /\ UNCHANGED <<hk, sched>>

(* The shells have exited, or will never start. *)
Finish(j) ==
  /\ job' = [job EXCEPT ![j].phase = IF @ = "RUN" THEN "CLEANUP" ELSE @, ![j].exec = "finished"]
  /\ Job(j)!Finish
  /\ UNCHANGED <<hk, sched>>

(* A fatal exception. *)
Exception(j) ==
  /\ job' = [job EXCEPT ![j].phase = "CLEANUP"]
  /\ Job(j)!Exception
  /\ UNCHANGED <<hk, sched>>

(* The exec system drops all that it has. *)
ExecRelease(j) ==
  /\ job' = [job EXCEPT ![j].exec = "done", ![j].execRanks = {}]
  /\ Job(j)!ExecRelease(Job(j)!All, TRUE)
  /\ UNCHANGED <<hk, sched>>

(* An epilog references ranks. *)
EpilogStart(j, e, ranks) ==
  /\ job' = [job EXCEPT ![j].actions = Job(j)!Add(e, Job(j)!Which(ranks, Job(j)!EveryRank))]
  /\ Job(j)!EpilogStart(e, ranks)
  /\ UNCHANGED <<hk, sched>>

(* An epilog drops some of its ranks. *)
Release(j, e, ranks) ==
  /\ e \in DOMAIN job[j].actions
  /\ job' = [job EXCEPT ![j].actions[e] = @ \ ranks]
  /\ Job(j)!Release(e, ranks)
  /\ UNCHANGED <<hk, sched>>

(* An epilog drops everything. *)
EpilogFinish(j, e) ==
  /\ job' = [job EXCEPT ![j].actions = Job(j)!Remove(e)]
  /\ Job(j)!EpilogFinish(e)
  /\ UNCHANGED <<hk, sched>>

(* Ranks are handed over early, if they may come back in parts; where `final' goes with the last rank, that is all. *)
PartialFree(j, ranks) ==
  /\ InParts
  /\ job' = [job EXCEPT ![j].held = @ \ ranks, ![j].released = @ \cup ranks]
  /\ Job(j)!PartialFree(ranks)
  /\ HandOver(j, ranks, LastRank = "with-last" /\ ranks = job[j].held)

(* What is left, perhaps nothing, is handed over, and that is all. *)
Free(j) ==
  /\ job' = [job EXCEPT ![j].held = {}, ![j].released = @ \cup job[j].held, ![j].closed = TRUE]
  /\ Job(j)!Free
  /\ HandOver(j, job[j].held, TRUE)

(* The job becomes INACTIVE; its housekeeping may go on. *)
Clean(j) ==
  /\ job' = [job EXCEPT ![j].phase = "INACTIVE"]
  /\ Job(j)!Clean
  /\ UNCHANGED <<hk, sched>>

-----------------------------------------------------------------------------
(* Housekeeping. *)

(* On some ranks the script has ended; with the first of them, the time until they go begins. *)
\* PR-31
Complete(j, ranks) ==
  /\ ranks # {}
  /\ ranks \subseteq hk[j].running
  /\ Flush(j, [hk[j] EXCEPT !.running = @ \ ranks,
                            !.done    = @ \cup ranks,
                            !.timer   = IF Policy = "timer" /\ @ = "off" THEN "on" ELSE @])
  /\ UNCHANGED job

(* The time is over: what has completed goes, and from now on each rank as it completes. *)
Expire(j) ==
  /\ hk[j].timer = "on"
  /\ Flush(j, [hk[j] EXCEPT !.timer = "expired"])
  /\ UNCHANGED job

-----------------------------------------------------------------------------
(* Reload and restart. *)

(* What the hello says is free of a job: what its housekeeping has really given back, and no more. *)
\* PR-38
GivenBack(j, h) == h.freed

(* One response for each job that has an allocation whose end was not sent, active or in housekeeping or both. *)
\* PR-37, PR-44
Hello(housekeeping) ==
  [j \in Jobs |->
    IF job[j].allocation # {} /\ ~housekeeping[j].final
      THEN [allocated |-> job[j].allocation \ (IF PartialOk THEN GivenBack(j, housekeeping[j]) ELSE {}),
            offNode   |-> j \in OffNode]
      ELSE [allocated |-> {}, offNode |-> FALSE]]

(* The scheduler forgets everything, the job manager nothing. *)
Reload ==
  /\ sched' = Hello(hk)
  /\ UNCHANGED <<job, hk>>

(* A job's housekeeping, as far as the job's log tells it: what was handed over is free. *)
\* PR-43, PR-44
Replayed(j) ==
  LET over == \/ job[j].closed
              \/ LastRank = "with-last" /\ job[j].allocation # {} /\ job[j].held = {}
  IN [running |-> {}, done |-> {}, freed |-> job[j].released, timer |-> "off", closing |-> over, final |-> over]

(* The job manager restarts, and the scheduler with it.  The jobs come back from their logs, as they were. *)
Restart ==
  /\ hk' = [j \in Jobs |-> Replayed(j)]
  /\ sched' = Hello(hk')
  /\ UNCHANGED job

-----------------------------------------------------------------------------

JobEvent(j) ==
  \/ Submit(j)
  \/ \E R \in SUBSET Ranks : Alloc(j, R)
  \/ Start(j)
  \/ Finish(j)
  \/ Exception(j)
  \/ ExecRelease(j)
  \/ \E e \in Epilogs, ranks \in Job(j)!Choices : EpilogStart(j, e, ranks)
  \/ \E e \in Epilogs, ranks \in SUBSET Ranks : Release(j, e, ranks)
  \/ \E e \in Epilogs : EpilogFinish(j, e)
  \/ \E ranks \in SUBSET Ranks : PartialFree(j, ranks)
  \/ Free(j)
  \/ Clean(j)

Next ==
  \/ \E j \in Jobs : \/ JobEvent(j)
                     \/ \E ranks \in SUBSET Ranks : Complete(j, ranks)
                     \/ Expire(j)
  \/ Reload
  \/ Restart

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* What must always hold. *)

(* Each job is one that PartialRelease allows, whatever the others do, and whatever is reloaded or restarted. *)
\* PR-05
EachIsPartialRelease ==
  [][ \A j \in Jobs : [Job(j)!Next]_(Job(j)!vars) ]_vars

(* The job manager's books: what a job still holds, or has in housekeeping. *)
Books(j) == job[j].held \cup hk[j].running \cup hk[j].done

(* No rank comes back to the scheduler before its script has ended; but a restart waits for none. *)
\* PR-31
FreeAfterHousekeeping ==
  [][ ~Restart => \A j \in Jobs : \A r \in sched[j].allocated \ sched'[j].allocated :
        r \in hk[j].done \/ \E ranks \in SUBSET Ranks : r \in ranks /\ Complete(j, ranks) ]_vars

(* A rank goes to the scheduler at most once: then the job has it no more, nor ever again. *)
\* PR-33
ReleasedOnce ==
  [][ \A j \in Jobs : /\ hk[j].freed \subseteq hk'[j].freed
                      /\ hk'[j].freed \cap Books(j)' = {} ]_vars

(* No rank has two jobs, as the scheduler believes. *)
\* PR-41
NoDoubleBooking ==
  \A j, k \in Jobs : j # k => sched[j].allocated \cap sched[k].allocated = {}

(* What a job uses, or has in housekeeping, is allocated to it, as the scheduler believes. *)
\* PR-41
ReferencedIsAllocated ==
  \A j \in Jobs : Job(j)!Referenced \cup hk[j].running \cup hk[j].done \subseteq sched[j].allocated

(* In the books each rank is one job's, once, and it is what the scheduler believes. *)
\* PR-40
AccountedOnce ==
  \A j \in Jobs : /\ Books(j) = sched[j].allocated
                  /\ \A k \in Jobs \ {j} : Books(j) \cap Books(k) = {}
                  /\ job[j].held \cap (hk[j].running \cup hk[j].done) = {}
                  /\ hk[j].running \cap hk[j].done = {}

(* The off-node part is the job's until `free', and so while any holder that started before it is active. *)
\* PR-36
OffNodeHeld ==
  \A j \in OffNode : job[j].allocation # {} /\ ~job[j].closed => sched[j].offNode

-----------------------------------------------------------------------------
(* What must happen at last, however often the scheduler is reloaded, or the job manager restarted. *)

(* Every script ends. *)
HousekeepingIsFair ==
  \A j \in Jobs : WF_vars(\E ranks \in SUBSET Ranks : Complete(j, ranks)) /\ WF_vars(Expire(j))

(* At some time no epilog starts any more. *)
StartsEnd ==
  <>[][~\E j \in Jobs : \E e \in Epilogs, ranks \in Job(j)!Choices : EpilogStart(j, e, ranks)]_vars

(* Every holder finishes, and the job manager gets its work done. *)
JobsAreFair ==
  \A j \in Jobs : /\ WF_vars(Finish(j))
                  /\ WF_vars(ExecRelease(j))
                  /\ \A e \in Epilogs : WF_vars(EpilogFinish(j, e))
                  /\ WF_vars(Free(j))
                  /\ WF_vars(Clean(j))

HangingSpec == Spec /\ HousekeepingIsFair
FairSpec    == HangingSpec /\ StartsEnd /\ JobsAreFair

(* What a job hands over comes back even if no holder ever finishes, unless it waits for the last rank. *)
HandedOverComesBack ==
  \A j \in Jobs, r \in Ranks : r \in job[j].released ~> r \in hk[j].freed

(* Every rank of an allocation comes back to the scheduler. *)
EveryRankComesBack ==
  \A j \in Jobs : job[j].allocation # {} ~> sched[j].allocated = {}

(* The off-node part of a job that has ended comes back. *)
\* PR-36
OffNodeFreed ==
  \A j \in Jobs : job[j].phase = "INACTIVE" ~> ~sched[j].offNode

(* A job that was allocated or is in CLEANUP becomes INACTIVE, and every rank is freed. *)
\* PR-20
EventuallyClean ==
  \A j \in Jobs : job[j].phase \in {"RUN", "CLEANUP"} ~> job[j].phase = "INACTIVE" /\ hk[j].freed = job[j].allocation
=============================================================================
