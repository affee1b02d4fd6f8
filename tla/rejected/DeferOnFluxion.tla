--------------------------- MODULE DeferOnFluxion ---------------------------
(* Rejected (design 6.5): the last rank goes early, and the final free is empty, on a scheduler that has then forgotten the
   job.  Its off-node part is never free again (unless the scheduler is reloaded). *)
EXTENDS Instance
=============================================================================
