----------------------------- MODULE MCInstance -----------------------------
(***************************************************************************)
(* For TLC: what its models of Instance need beside the bounds.            *)
(***************************************************************************)
EXTENDS Instance, TLC

(* Neither the jobs, the ranks nor the epilogs differ from each other. *)
Symmetry == Permutations(Jobs) \cup Permutations(Ranks) \cup Permutations(Epilogs)
=============================================================================
