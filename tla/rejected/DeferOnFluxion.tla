--------------------------- MODULE DeferOnFluxion ---------------------------
(* Rejected (decision 5): the last rank goes early, and the final free is empty, with a scheduler that has forgotten the
   job by then.  The off-node part is never free again, unless the scheduler is reloaded. *)
\* PR-29
EXTENDS Instance
=============================================================================
