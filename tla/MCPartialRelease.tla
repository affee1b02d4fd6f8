-------------------------- MODULE MCPartialRelease --------------------------
(***************************************************************************)
(* For TLC: what its models of PartialRelease need beside the bounds.      *)
(***************************************************************************)
EXTENDS PartialRelease, TLC

(* Neither the ranks nor the epilogs differ from each other. *)
Symmetry == Permutations(Ranks) \cup Permutations(Epilogs)

(* Every state that satisfies Inv, and said so that TLC need not try each combination of all values. *)
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

(* Every combination of all values, to see at small bounds that InvStates leaves none out. *)
TypedStates ==
  /\ allocation \in SUBSET Ranks
  /\ held \in SUBSET Ranks
  /\ released \in SUBSET Ranks
  /\ closed \in BOOLEAN
  /\ phase \in Phases
  /\ exec \in Execs
  /\ execRanks \in SUBSET Ranks
  /\ actions \in UNION {[active -> SUBSET Ranks] : active \in SUBSET (Epilogs \cup Prologs)}

Stay == UNCHANGED vars

InvStatesAreAll == Inv => InvStates
=============================================================================
