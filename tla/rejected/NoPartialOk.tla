---------------------------- MODULE NoPartialOk -----------------------------
(* Rejected (design 5): ranks are released early although the scheduler does not understand which are free in a hello.
   After a reload it believes that the job has them all. *)
EXTENDS Instance

InPartsAnyway == TRUE                                                           \* for InParts
=============================================================================
