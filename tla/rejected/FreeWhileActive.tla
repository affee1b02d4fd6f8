--------------------------- MODULE FreeWhileActive ---------------------------
(* Rejected: the job is freed as soon as no rank is referenced, although an epilog is active on none (it moves data off
   the rabbit storage, which goes with the final free). *)
\* PR-15
EXTENDS PartialRelease

FreeUnreferenced ==                                                             \* for Free
  /\ GateOpen
  /\ \A a \in DOMAIN actions : actions[a] = {}
  /\ ~ExecIsHolder
  /\ allocation # {}
  /\ ~closed
  /\ held' = {}
  /\ released' = released \cup held
  /\ closed' = TRUE
  /\ UNCHANGED <<phase, exec, execRanks, actions, allocation>>
=============================================================================
