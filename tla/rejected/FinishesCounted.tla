--------------------------- MODULE FinishesCounted ---------------------------
(* Rejected (decision 8; what flux-core 0.88 does): the job manager counts epilog-finish events and does not match them.
   One for an epilog that never started ends the hold of another, which still runs. *)
\* PR-08
EXTENDS PartialRelease, Integers, FiniteSets

VARIABLE count          \* how many epilogs the job manager believes to be active

CountInit ==
  /\ Init
  /\ count = 0

MatchedStep ==
  /\ Next
  /\ count' = count + Cardinality(Epilogs \cap DOMAIN actions') - Cardinality(ActiveEpilogs)

UnmatchedEpilogFinish(e) ==
  /\ e \notin DOMAIN actions
  /\ count > 0
  /\ count' = count - 1
  /\ UNCHANGED vars

FreeByCount ==
  /\ GateOpen
  /\ count = 0
  /\ ActivePrologs = {}
  /\ ~ExecIsHolder
  /\ allocation # {}
  /\ ~closed
  /\ held' = {}
  /\ released' = released \cup held
  /\ closed' = TRUE
  /\ UNCHANGED <<phase, exec, execRanks, actions, allocation, count>>

CountNext ==
  \/ MatchedStep
  \/ \E e \in Epilogs : UnmatchedEpilogFinish(e)
  \/ FreeByCount
=============================================================================
