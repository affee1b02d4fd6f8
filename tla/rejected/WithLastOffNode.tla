-------------------------- MODULE WithLastOffNode ---------------------------
(* Rejected (decision 5): `final' goes with the last rank of a job that has an off-node part.  That part goes too, while
   an epilog moves data off it. *)
\* PR-30
EXTENDS Instance
=============================================================================
