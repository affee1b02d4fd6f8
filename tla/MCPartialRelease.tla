-------------------------- MODULE MCPartialRelease --------------------------
(***************************************************************************)
(* For TLC: what its models of PartialRelease need beside the bounds.      *)
(***************************************************************************)
EXTENDS PartialRelease, TLC

(* Neither the ranks nor the epilogs differ from each other. *)
Symmetry == Permutations(Ranks) \cup Permutations(Epilogs)

(* Every state that satisfies Inv.  It is Inv, said so that TLC can enumerate: it is the first conjuncts that do not
   let it try each combination of all values (InvStates = Inv is a model of its own, at small bounds). *)
InvStates ==
  /\ allocation \in SUBSET Ranks
  /\ held \in SUBSET allocation
  /\ released \in SUBSET (allocation \ held)
  /\ closed \in BOOLEAN
  /\ phase \in Phases
  /\ InvAllocation
  /\ exec \in Execs
  /\ execRanks \in SUBSET held
  /\ InvExec
  /\ actions \in UNION {[active -> SUBSET EveryRank] : active \in SUBSET (Epilogs \cup Prologs)}
  /\ Inv
=============================================================================
