--------------------------- MODULE FreeAtHandOver ---------------------------
(* Rejected: what a job hands over goes to the scheduler without waiting for its housekeeping. *)
\* PR-31
EXTENDS Instance

HandOverDone(j, ranks, last) ==                                                 \* for HandOver
  Flush(j, [hk[j] EXCEPT !.done = @ \cup ranks, !.closing = last])
=============================================================================
