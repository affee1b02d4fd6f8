---------------------------- MODULE NoReleaseGate ----------------------------
(* Rejected (decision 3): in CLEANUP ranks are handed over as the exec system drops them, also while shells still die
   after a fatal exception.  An epilog that starts at `finish' never runs on these ranks. *)
\* PR-13
EXTENDS JobManager

ReleasableInCleanup == IF phase = "CLEANUP" THEN held \ Referenced ELSE {}      \* for Releasable
=============================================================================
