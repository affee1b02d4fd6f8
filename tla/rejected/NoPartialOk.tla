---------------------------- MODULE NoPartialOk -----------------------------
(* Rejected (decision 6): ranks come back in parts although the scheduler does not understand a hello that says so.  After
   a reload it believes that the job has them all. *)
\* PR-39
EXTENDS Instance

InPartsAnyway == TRUE                                                           \* for InParts
=============================================================================
