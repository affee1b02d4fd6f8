----------------------------- MODULE JobManager -----------------------------
(***************************************************************************)
(* The job manager's part in the life of one job: it applies what is       *)
(* reported to it, and decides the hand-overs.                             *)
(*                                                                         *)
(* An `epilog-start' is not applied when it happens: a plugin posts it     *)
(* (answering `finish', say), and it is applied a moment later.  While     *)
(* one is queued, nothing is decided, so that the epilog finds its ranks.  *)
(***************************************************************************)
EXTENDS PartialRelease

VARIABLE queued         \* the epilog-starts posted and not applied: which ranks, and whether the gate was shut then

allVars == <<vars, queued>>

ManagerTypeOK ==
  /\ TypeOK
  /\ \E posted \in SUBSET Epilogs : queued \in [posted -> [ranks : Choices, early : BOOLEAN]]

-----------------------------------------------------------------------------

ManagerInit ==
  /\ Init
  /\ queued = [e \in {} |-> {}]

(* All events but those that the job manager decides, and epilog-starts, are applied as they come. *)
Report ==
  /\ Reported
  /\ UNCHANGED queued

(* From the allocation on a plugin posts an epilog-start, for ranks that are held. *)
Post(e, ranks) ==
  /\ phase \in {"RUN", "CLEANUP"}
  /\ e \notin DOMAIN queued \cup DOMAIN actions
  /\ ranks # All => ranks \subseteq held
  /\ queued' = [q \in DOMAIN queued \cup {e} |->
                 IF q = e THEN [ranks |-> ranks, early |-> ~GateOpen] ELSE queued[q]]
  /\ UNCHANGED vars

(* In CLEANUP a queued epilog-start is applied, or refused when the ranks that it names were lost. *)
\* PR-22
ApplyPosted(e) ==
  /\ phase = "CLEANUP"
  /\ e \in DOMAIN queued
  /\ queued' = [q \in DOMAIN queued \ {e} |-> queued[q]]
  /\ \/ EpilogStart(e, queued[e].ranks)
     \/ queued[e].ranks # All /\ ~(queued[e].ranks \subseteq held) /\ UNCHANGED vars

(* What partial-free hands over: all that is releasable, but for one rank where one is to be kept (no matter which). *)
\* PR-17
ToHandOver ==
  IF LastRank = "keep" /\ Releasable = held
    THEN {held \ {kept} : kept \in held}
    ELSE {Releasable}

(* With no epilog-start queued, the job manager does what there is to do: free, else clean, else partial-free. *)
\* PR-17, PR-18
Decide ==
  /\ DOMAIN queued = {}
  /\ \/ Free
     \/ Clean
     \/ \E ranks \in ToHandOver : PartialFree(ranks)
  /\ UNCHANGED queued

ManagerNext ==
  \/ Report
  \/ \E e \in Epilogs, ranks \in Choices : Post(e, ranks)
  \/ \E e \in Epilogs : ApplyPosted(e)
  \/ Decide

ManagerSpec == ManagerInit /\ [][ManagerNext]_allVars

-----------------------------------------------------------------------------
(* What must always hold. *)

(* An epilog-start for all ranks that was queued when the gate opened references the whole allocation, but for
   what was lost.  (The gate opens once, so that is one that was posted before; or applied before.) *)
\* PR-18
QueuedEpilogSeesAll ==
  [][ \A e \in DOMAIN queued \ DOMAIN queued' :
        queued[e].ranks = All /\ queued[e].early => allocation \ Lost \subseteq actions'[e] ]_allVars

-----------------------------------------------------------------------------
(* What must happen at last. *)

(* The job manager gets its work done. *)
ManagerIsFair ==
  /\ WF_allVars(Decide)
  /\ \A e \in Epilogs : WF_allVars(ApplyPosted(e))

(* At some time nothing starts any more. *)
Starting ==
  \/ \E e \in Epilogs, ranks \in Choices : Post(e, ranks)
  \/ \E p \in Prologs : PrologStart(p)

StartsEnd == <>[][~Starting]_allVars

(* Every holder finishes, the exec system with its final release. *)
HoldersFinish ==
  /\ \A p \in Prologs : WF_allVars(PrologFinish(p) /\ UNCHANGED queued)
  /\ \A e \in Epilogs : WF_allVars(EpilogFinish(e) /\ UNCHANGED queued)
  /\ WF_allVars(Finish /\ UNCHANGED queued)
  /\ WF_allVars(ExecRelease(All, TRUE) /\ UNCHANGED queued)

(* An unreferenced rank behind an open gate is handed over, even if no holder ever finishes (with `keep': all but one);
   unless a late epilog references it, or the scheduler takes it away. *)
\* PR-19
EarlyRelease ==
  \A r \in Ranks :
    r \in Releasable ~> \/ r \in released \cup Referenced \cup Lost
                        \/ LastRank = "keep" /\ held = {r}

(* Of a job that was allocated or is in CLEANUP, every rank is handed over or lost, and it becomes INACTIVE. *)
\* PR-20
EventuallyClean ==
  phase \in {"RUN", "CLEANUP"} ~> phase = "INACTIVE" /\ held = {}

HangingSpec == ManagerSpec /\ ManagerIsFair /\ StartsEnd
FairSpec    == HangingSpec /\ HoldersFinish
=============================================================================
