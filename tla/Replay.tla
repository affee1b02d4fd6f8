------------------------------- MODULE Replay -------------------------------
(***************************************************************************)
(* The job manager restarts, and knows of a job only what its log says.    *)
(*                                                                         *)
(* Two who see the same events, with the same arguments, must come to the  *)
(* same state: the job manager that decided them, and the one that replays *)
(* them.  So nothing but the log is state.                                 *)
(***************************************************************************)
EXTENDS PartialRelease

VARIABLES rphase, rexec, rexecRanks, ractions, rallocation, rheld, rreleased, rclosed     \* as replayed

replayed == <<rphase, rexec, rexecRanks, ractions, rallocation, rheld, rreleased, rclosed>>

R == INSTANCE PartialRelease WITH
       phase <- rphase, exec <- rexec, execRanks <- rexecRanks, actions <- ractions,
       allocation <- rallocation, held <- rheld, released <- rreleased, closed <- rclosed

-----------------------------------------------------------------------------

ReplayInit ==
  /\ Init
  /\ R!Init

(* The same event happens in both. *)
ReplayNext ==
  \/ Submit           /\ R!Submit
  \/ Validate         /\ R!Validate
  \/ Invalidate       /\ R!Invalidate
  \/ Depend           /\ R!Depend
  \/ Priority         /\ R!Priority
  \/ Reprioritize     /\ R!Reprioritize
  \/ Other            /\ R!Other
  \/ \E ranks \in SUBSET Ranks : Alloc(ranks) /\ R!Alloc(ranks)
  \/ \E p \in Prologs : PrologStart(p)  /\ R!PrologStart(p)
  \/ \E p \in Prologs : PrologFinish(p) /\ R!PrologFinish(p)
  \/ Start            /\ R!Start
  \/ Finish           /\ R!Finish
  \/ Exception        /\ R!Exception
  \/ SchedulerRestart /\ R!SchedulerRestart
  \/ \E ranks \in Choices, final \in BOOLEAN : ExecRelease(ranks, final) /\ R!ExecRelease(ranks, final)
  \/ \E e \in Epilogs, ranks \in Choices : EpilogStart(e, ranks) /\ R!EpilogStart(e, ranks)
  \/ \E e \in Epilogs, ranks \in Choices : Release(e, ranks) /\ R!Release(e, ranks)
  \/ \E e \in Epilogs : EpilogFinish(e) /\ R!EpilogFinish(e)
  \/ \E ranks \in SUBSET Ranks : PartialFree(ranks) /\ R!PartialFree(ranks)
  \/ Free             /\ R!Free
  \/ Clean            /\ R!Clean

ReplaySpec == ReplayInit /\ [][ReplayNext]_<<vars, replayed>>

-----------------------------------------------------------------------------

(* State is a function of the log. *)
\* PR-05
ReplayIsState == replayed = vars
=============================================================================
