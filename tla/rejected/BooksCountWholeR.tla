-------------------------- MODULE BooksCountWholeR --------------------------
(* Rejected (decision 7; what flux-core 0.88 does): the job manager counts the whole R of a job until `free'.  It counts
   ranks that were given back, and perhaps are another job's. *)
\* PR-40
EXTENDS Instance

BooksWithWholeR(j) ==                                                           \* for Books
  IF ~job[j].closed THEN job[j].allocation ELSE hk[j].running \cup hk[j].done
=============================================================================
