--------------------------- MODULE PartialRelease ---------------------------
(***************************************************************************)
(* One job of a resource manager, and everything that decides what an      *)
(* event does to it: early, partial release of the job's ranks.            *)
(*                                                                         *)
(* A job *holds* the ranks of its allocation until it hands them over.     *)
(* *Holders* reference ranks: the exec system, prologs and epilogs.  A     *)
(* reference only ever shrinks.  What is held and not referenced may be    *)
(* handed over while the *release gate* is open.  The last hand-over is    *)
(* `free', when no holder is left; `clean' then ends the job.              *)
(*                                                                         *)
(* An action is an event: its guard is when the event may happen, its      *)
(* effect what the event means.  Who posts it is no matter here: see       *)
(* JobManager.  A step that the spec does not allow is a violation.        *)
(*                                                                         *)
(* The start request is not logged but derived: in RUN, with no prolog     *)
(* active, the exec system has been asked to start the job, and has the    *)
(* ranks.  It is a holder from `start' on (or from `finish', when the      *)
(* shells never started).                                                  *)
(***************************************************************************)

CONSTANTS Ranks,        \* the ranks that an allocation may be made of
          Epilogs,      \* the descriptions of epilogs
          Prologs,      \* the descriptions of prologs
          LastRank      \* may the last held rank go while a holder is active?

All == CHOOSE all : all \notin SUBSET Ranks      \* "all", where an event says which ranks

Phases == {"-", "NEW", "DEPEND", "PRIORITY", "SCHED", "RUN", "CLEANUP", "INACTIVE"}
Execs  == {"idle", "requested", "running", "finished", "done"}

ASSUME /\ Ranks # {}
       /\ Epilogs \cap Prologs = {}
       /\ LastRank \in {"keep", "defer", "with-last"}

VARIABLES phase,        \* the job state of RFC 21; "-" before the first event
          exec,         \* how far the exec system is with the job
          execRanks,    \* what the exec system has, from the start request to its final release
          actions,      \* what each active epilog and prolog references
          allocation,   \* the ranks of R, ever
          held,         \* those that the job still has
          released,     \* those that it has handed over; what is in neither was lost
          closed        \* the allocation is over, by `free' or by loss

vars == <<phase, exec, execRanks, actions, allocation, held, released, closed>>

TypeOK ==
  /\ phase \in Phases
  /\ exec \in Execs
  /\ execRanks \subseteq Ranks
  /\ \E active \in SUBSET (Epilogs \cup Prologs) : actions \in [active -> SUBSET Ranks]
  /\ allocation \subseteq Ranks
  /\ held \subseteq Ranks
  /\ released \subseteq Ranks
  /\ closed \in BOOLEAN

-----------------------------------------------------------------------------
(* What the rules speak of. *)

Active == phase \notin {"-", "INACTIVE"}

ActiveEpilogs == Epilogs \cap DOMAIN actions
ActivePrologs == Prologs \cap DOMAIN actions
ExecIsHolder  == exec \in {"running", "finished"}
NoHolder      == DOMAIN actions = {} /\ ~ExecIsHolder

Referenced == held \cap (UNION {actions[a] : a \in DOMAIN actions}
                         \cup IF ExecIsHolder THEN execRanks ELSE {})

GateOpen == phase = "CLEANUP" /\ exec \notin {"requested", "running"}

Releasable == IF GateOpen THEN held \ Referenced ELSE {}

Lost == allocation \ (held \cup released)

EveryRank == IF allocation = {} THEN Ranks ELSE held      \* what "all" references

Which(ranks, all) == IF ranks = All THEN all ELSE ranks

Add(action, ranks) == [a \in DOMAIN actions \cup {action} |-> IF a = action THEN ranks ELSE actions[a]]
Remove(action)     == [a \in DOMAIN actions \ {action} |-> actions[a]]
Within(ranks)      == [a \in DOMAIN actions |-> actions[a] \cap ranks]

\* PR-06
RequestStart ==
  IF phase' = "RUN" /\ Prologs \cap DOMAIN actions' = {}
    THEN exec' = "requested" /\ execRanks' = held'
    ELSE UNCHANGED <<exec, execRanks>>

-----------------------------------------------------------------------------
(* Before the allocation.  Flux ignores what does not fit the phase. *)

Init ==
  /\ phase = "-"
  /\ exec = "idle"
  /\ execRanks = {}
  /\ actions = [a \in {} |-> {}]
  /\ allocation = {}
  /\ held = {}
  /\ released = {}
  /\ closed = FALSE

Move(from, to) == phase' = IF phase = from THEN to ELSE phase

(* A job is submitted once, by its first event. *)
Submit ==
  /\ phase = "-"
  /\ phase' = "NEW"
  /\ UNCHANGED <<exec, execRanks, actions, allocation, held, released, closed>>

(* The submission is valid: NEW -> DEPEND. *)
Validate ==
  /\ Active
  /\ Move("NEW", "DEPEND")
  /\ UNCHANGED <<exec, execRanks, actions, allocation, held, released, closed>>

(* The submission is not valid: a NEW job is removed. *)
Invalidate ==
  /\ Active
  /\ Move("NEW", "INACTIVE")
  /\ UNCHANGED <<exec, execRanks, actions, allocation, held, released, closed>>

(* All dependencies are met: DEPEND -> PRIORITY. *)
Depend ==
  /\ Active
  /\ Move("DEPEND", "PRIORITY")
  /\ UNCHANGED <<exec, execRanks, actions, allocation, held, released, closed>>

(* The job has a priority: PRIORITY -> SCHED. *)
Priority ==
  /\ Active
  /\ Move("PRIORITY", "SCHED")
  /\ UNCHANGED <<exec, execRanks, actions, allocation, held, released, closed>>

(* `urgency', `jobspec-update' and `flux-restart' ask for a new priority: SCHED -> PRIORITY. *)
Reprioritize ==
  /\ Active
  /\ Move("SCHED", "PRIORITY")
  /\ UNCHANGED <<exec, execRanks, actions, allocation, held, released, closed>>

(* All other events (`memo', an exception that is not fatal, an unknown name) change nothing. *)
\* PR-21
Other ==
  /\ Active
  /\ UNCHANGED vars

-----------------------------------------------------------------------------
(* The allocation, and the exec system. *)

(* A job is allocated once; in CLEANUP (the grant crossed a cancel) it stays there, and holds the ranks. *)
Alloc(R) ==
  /\ Active
  /\ allocation = {}
  /\ R # {}
  /\ phase' = IF phase = "CLEANUP" THEN phase ELSE "RUN"
  /\ actions' = Within(R)
  /\ allocation' = R
  /\ held' = R
  /\ RequestStart
  /\ UNCHANGED <<released, closed>>

(* Before `start' a prolog references all ranks, also those to come; in RUN it withdraws the start request. *)
PrologStart(p) ==
  /\ Active
  /\ p \notin DOMAIN actions
  /\ exec \in {"idle", "requested"}
  /\ actions' = Add(p, EveryRank)
  /\ IF phase = "RUN"
       THEN exec' = "idle" /\ execRanks' = {}
       ELSE UNCHANGED <<exec, execRanks>>
  /\ UNCHANGED <<phase, allocation, held, released, closed>>

(* An active prolog drops everything; after the last one, in RUN, the start is requested. *)
PrologFinish(p) ==
  /\ Active
  /\ p \in DOMAIN actions
  /\ actions' = Remove(p)
  /\ UNCHANGED <<phase, allocation, held, released, closed>>
  /\ RequestStart

(* The shells have started, as was requested, with no prolog active. *)
\* PR-11
Start ==
  /\ exec = "requested"
  /\ ActivePrologs = {}
  /\ exec' = "running"
  /\ UNCHANGED <<phase, execRanks, actions, allocation, held, released, closed>>

(* The shells have exited, or will never start: RUN -> CLEANUP. *)
Finish ==
  /\ exec \in {"requested", "running"}
  /\ Move("RUN", "CLEANUP")
  /\ exec' = "finished"
  /\ UNCHANGED <<execRanks, actions, allocation, held, released, closed>>

(* A fatal exception ends what the job was about, in any phase. *)
Exception ==
  /\ Active
  /\ phase' = "CLEANUP"
  /\ UNCHANGED <<exec, execRanks, actions, allocation, held, released, closed>>

(* A fatal exception of type `scheduler-restart' also takes the allocation away, none of which may be in use. *)
SchedulerRestart ==
  /\ Active
  /\ Referenced = {}
  /\ phase' = "CLEANUP"
  /\ execRanks' = {}
  /\ actions' = IF allocation = {} THEN actions ELSE Within({})
  /\ held' = {}
  /\ closed' = (allocation # {})
  /\ UNCHANGED <<exec, allocation, released>>

(* The exec system drops ranks that it has; the final release ends it, and comes after `finish' if the job started. *)
\* PR-07
ExecRelease(ranks, final) ==
  /\ exec \in {"requested", "running", "finished"}
  /\ ranks # All => ranks \subseteq execRanks
  /\ final => phase = "CLEANUP"
  /\ final => exec # "running"
  /\ exec' = IF final THEN "done" ELSE exec
  /\ execRanks' = IF final THEN {} ELSE execRanks \ Which(ranks, execRanks)
  /\ UNCHANGED <<phase, actions, allocation, held, released, closed>>

-----------------------------------------------------------------------------
(* Epilogs, and the hand-overs. *)

(* In CLEANUP an epilog references what it says of what is held: all of it (and what may still come), some, or none. *)
\* PR-01
EpilogStart(e, ranks) ==
  /\ phase = "CLEANUP"
  /\ e \notin DOMAIN actions
  /\ ranks # All => ranks \subseteq held
  /\ actions' = Add(e, Which(ranks, EveryRank))
  /\ UNCHANGED <<phase, exec, execRanks, allocation, held, released, closed>>

(* An active epilog drops held ranks that it references, and goes on (`release' with a description). *)
\* PR-02
Release(e, ranks) ==
  /\ e \in DOMAIN actions
  /\ ranks # All => ranks \subseteq actions[e] \cap held
  /\ actions' = [actions EXCEPT ![e] = @ \ Which(ranks, @)]
  /\ UNCHANGED <<phase, exec, execRanks, allocation, held, released, closed>>

(* An active epilog drops everything. *)
EpilogFinish(e) ==
  /\ e \in DOMAIN actions
  /\ actions' = Remove(e)
  /\ UNCHANGED <<phase, exec, execRanks, allocation, held, released, closed>>

(* While a holder remains, releasable ranks are handed over; if the last rank is to be kept, not all that are held. *)
\* PR-03
PartialFree(ranks) ==
  /\ ~NoHolder
  /\ ranks # {}
  /\ ranks \subseteq Releasable
  /\ LastRank = "keep" => ranks # held
  /\ held' = held \ ranks
  /\ released' = released \cup ranks
  /\ UNCHANGED <<phase, exec, execRanks, actions, allocation, closed>>

(* Behind an open gate and with no holder active, everything still held is handed over, once, and that is final. *)
Free ==
  /\ GateOpen
  /\ NoHolder
  /\ allocation # {}
  /\ ~closed
  /\ held' = {}
  /\ released' = released \cup held
  /\ closed' = TRUE
  /\ UNCHANGED <<phase, exec, execRanks, actions, allocation>>

(* A job in CLEANUP that nobody uses or owes anything, and that was freed if it was allocated, becomes INACTIVE. *)
Clean ==
  /\ phase = "CLEANUP"
  /\ NoHolder
  /\ exec # "requested"
  /\ allocation = {} \/ closed
  /\ phase' = "INACTIVE"
  /\ UNCHANGED <<exec, execRanks, actions, allocation, held, released, closed>>

-----------------------------------------------------------------------------

Choices == SUBSET Ranks \cup {All}

(* What comes from outside the job manager. *)
Reported ==
  \/ Submit
  \/ Validate
  \/ Invalidate
  \/ Depend
  \/ Priority
  \/ Reprioritize
  \/ Other
  \/ \E R \in SUBSET Ranks : Alloc(R)
  \/ \E p \in Prologs : PrologStart(p)
  \/ \E p \in Prologs : PrologFinish(p)
  \/ Start
  \/ Finish
  \/ Exception
  \/ SchedulerRestart
  \/ \E ranks \in Choices, final \in BOOLEAN : ExecRelease(ranks, final)
  \/ \E e \in Epilogs, ranks \in Choices : Release(e, ranks)
  \/ \E e \in Epilogs : EpilogFinish(e)

(* What the job manager decides. *)
Decided ==
  \/ \E ranks \in SUBSET Ranks : PartialFree(ranks)
  \/ Free
  \/ Clean

\* PR-04
Next ==
  \/ Reported
  \/ \E e \in Epilogs, ranks \in Choices : EpilogStart(e, ranks)
  \/ Decided

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* What must always hold.  A hand-over is a step that adds to `released'. *)

HandedOver == released' \ released

(* No rank is handed over while an active holder references it. *)
\* PR-11, PR-12
NoReleaseWhileReferenced ==
  [][ /\ \A a \in DOMAIN actions : actions[a] \cap HandedOver = {}
      /\ ExecIsHolder => execRanks \cap HandedOver = {} ]_vars

(* Nothing is handed over before CLEANUP, nor between start request and `finish' (or the final release). *)
\* PR-07, PR-13
ReleaseGate ==
  [][ HandedOver # {} => phase = "CLEANUP" /\ exec \in {"idle", "finished", "done"} ]_vars

(* A reference is only ever on ranks that the job still holds; before the allocation it is on none yet. *)
\* PR-10
ReferencesAreHeld ==
  /\ execRanks \subseteq held
  /\ allocation # {} => \A a \in DOMAIN actions : actions[a] \subseteq held

(* A rank is handed over at most once: it was held, and never is again. *)
\* PR-14
ReleasedOnce ==
  [][ /\ HandedOver \subseteq held
      /\ released \subseteq released'
      /\ released' \cap held' = {} ]_vars

(* The allocation ends once: by loss, or by `free' when no holder is active; after it the job holds nothing. *)
\* PR-15
FinalIsLast ==
  [][ /\ closed' /\ ~closed => held' = {} /\ (NoHolder \/ SchedulerRestart)
      /\ closed => closed' /\ held' = {} /\ HandedOver = {} ]_vars

(* `clean' needs no active holder and nothing still held; INACTIVE has no exit. *)
\* PR-16
CleanIsLast ==
  [][ /\ phase # "INACTIVE"
      /\ phase = "CLEANUP" /\ phase' = "INACTIVE" => NoHolder /\ exec # "requested" /\ held = {} ]_vars

(* No step grows a reference. *)
\* PR-09
ReferencesShrink ==
  [][ /\ \A a \in DOMAIN actions \cap DOMAIN actions' : actions'[a] \subseteq actions[a]
      /\ exec # "idle" => execRanks' \subseteq execRanks ]_vars

-----------------------------------------------------------------------------
(* The states that the rules lead to.  Inv is inductive: every step from a state that satisfies it leads to one.  (At
   the bounds that were checked it holds of the reachable states and of no other.) *)

(* What is allocated is held, handed over or, once that is over, lost. *)
\* PR-28
InvAllocation ==
  /\ held \cap released = {}
  /\ held \cup released \subseteq allocation
  /\ closed => allocation # {} /\ held = {}
  /\ ~closed => Lost = {}
  /\ phase \in {"-", "NEW", "DEPEND", "PRIORITY", "SCHED"} => allocation = {}
  /\ phase = "RUN" => allocation # {} /\ held = allocation
  /\ phase = "INACTIVE" => allocation = {} \/ closed
  /\ LastRank = "keep" /\ allocation # {} /\ ~closed => held # {}

(* The exec system has ranks only of an allocation, and nothing is handed over while it is busy. *)
InvExec ==
  /\ execRanks \subseteq held
  /\ exec \in {"idle", "done"} => execRanks = {}
  /\ exec # "idle" => allocation # {}
  /\ exec \in {"requested", "running"} => released = {}
  /\ LastRank = "keep" /\ exec = "finished" /\ closed => Lost # {}
  /\ phase = "RUN" => exec \in {"idle", "requested", "running"}
  /\ phase = "INACTIVE" => exec \in {"idle", "done"}

(* A prolog references every rank, an epilog what is held; before the allocation an epilog references all or none. *)
InvActions ==
  /\ phase = "-" => DOMAIN actions = {}
  /\ phase # "CLEANUP" => ActiveEpilogs = {}
  /\ phase = "RUN" => (exec = "idle" <=> ActivePrologs # {})
  /\ phase = "INACTIVE" /\ allocation # {} => ActivePrologs = {}
  /\ exec = "running" => ActivePrologs = {}
  /\ exec # "idle" /\ ActivePrologs # {} => released = {}
  /\ \A p \in ActivePrologs : actions[p] = EveryRank
  /\ \A e \in ActiveEpilogs : actions[e] \subseteq EveryRank
  /\ allocation = {} => \A e \in ActiveEpilogs : actions[e] \in {{}, Ranks}

Inv ==
  /\ TypeOK
  /\ InvAllocation
  /\ InvExec
  /\ InvActions
=============================================================================
