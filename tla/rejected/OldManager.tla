----------------------------- MODULE OldManager -----------------------------
(* Rejected (decision 2): a job manager restarts that is older than `partial-free', and skips it.  In its hello a job
   still has the ranks that were given to another. *)
\* PR-47
EXTENDS Instance

ReplayedWithoutPartialFree(j) ==                                                \* for Replayed
  [running |-> {}, done |-> {}, freed |-> IF job[j].closed THEN job[j].released ELSE {},
   timer |-> "off", closing |-> job[j].closed, final |-> job[j].closed]
=============================================================================
