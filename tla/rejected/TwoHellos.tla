----------------------------- MODULE TwoHellos ------------------------------
(* Rejected (decision 6): two responses for a job that is both active and in housekeeping, each with what it has itself.
   The scheduler believes the later. *)
\* PR-37
EXTENDS Instance

FreeInTheLater(j, h) ==                                                         \* for GivenBack
  LET inHousekeeping == h.running \cup h.done
  IN job[j].allocation \ IF inHousekeeping # {} THEN inHousekeeping ELSE job[j].held
=============================================================================
