------------------------ MODULE HelloFreesHandedOver ------------------------
(* Rejected (decision 6): the hello says that all ranks are free that the job has handed over.  On some of them
   housekeeping still runs. *)
\* PR-38
EXTENDS Instance

HandedOver(j, h) == job[j].released                                             \* for GivenBack
=============================================================================
