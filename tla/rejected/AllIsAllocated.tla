--------------------------- MODULE AllIsAllocated ---------------------------
(* Rejected (decision 4): "all" is all that was ever allocated.  A late epilog then references ranks that are gone. *)
\* PR-10
EXTENDS PartialRelease

EveryAllocatedRank == IF allocation = {} THEN Ranks ELSE allocation \ Lost      \* for EveryRank
=============================================================================
