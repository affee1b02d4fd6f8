-------------------------- MODULE FreeWithoutGate ---------------------------
(* Rejected (decision 3): in CLEANUP a job is freed when no holder is active, also when the exec system may still start
   it (after a fatal exception). *)
\* PR-13
EXTENDS Instance

FreeUnreferenced(j) ==                                                          \* for Free
  /\ job[j].phase = "CLEANUP"
  /\ Job(j)!NoHolder
  /\ job[j].allocation # {}
  /\ ~job[j].closed
  /\ job' = [job EXCEPT ![j].held = {}, ![j].released = @ \cup job[j].held, ![j].closed = TRUE]
  /\ HandOver(j, job[j].held, TRUE)
=============================================================================
