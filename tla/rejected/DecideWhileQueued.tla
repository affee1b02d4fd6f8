-------------------------- MODULE DecideWhileQueued --------------------------
(* Rejected (decision 9): the job manager decides while an epilog-start is queued.  The epilog finds its ranks gone. *)
\* PR-18
EXTENDS JobManager

DecideAtOnce ==                                                                 \* for Decide
  /\ \/ Free
     \/ Clean
     \/ \E ranks \in ToHandOver : PartialFree(ranks)
  /\ UNCHANGED queued
=============================================================================
