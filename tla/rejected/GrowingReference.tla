-------------------------- MODULE GrowingReference --------------------------
(* Rejected: a second epilog-start of an active epilog says anew what it references, also ranks that it had dropped. *)
\* PR-09
EXTENDS PartialRelease

EpilogStartAgain(e, ranks) ==                                                   \* for EpilogStart
  /\ phase = "CLEANUP"
  /\ ranks # All => ranks \subseteq held
  /\ actions' = Add(e, Which(ranks, EveryRank))
  /\ UNCHANGED <<phase, exec, execRanks, allocation, held, released, closed>>
=============================================================================
