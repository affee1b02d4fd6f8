------------------------- MODULE TracePartialRelease -------------------------
(***************************************************************************)
(* Are these logs behaviours of PartialRelease?                            *)
(*                                                                         *)
(* A log says which events happened, with their arguments; so each step    *)
(* takes the log's next event as the action of PartialRelease that it is,  *)
(* and there is at most one state to go to.  A log from which no step is   *)
(* possible has ended, or stops: its next event is one that the spec does  *)
(* not allow.  `partialrelease trace-check' writes the logs down.          *)
(***************************************************************************)
EXTENDS PartialRelease, Naturals, Sequences, TLC

VARIABLES trace,        \* which log this is
          step          \* how many of its events have happened

Happens(event) ==
  CASE event.action = "Submit"           -> Submit
    [] event.action = "Validate"         -> Validate
    [] event.action = "Invalidate"       -> Invalidate
    [] event.action = "Depend"           -> Depend
    [] event.action = "Priority"         -> Priority
    [] event.action = "Reprioritize"     -> Reprioritize
    [] event.action = "Other"            -> Other
    [] event.action = "Alloc"            -> Alloc(event.ranks)
    [] event.action = "PrologStart"      -> PrologStart(event.prolog)
    [] event.action = "PrologFinish"     -> PrologFinish(event.prolog)
    [] event.action = "Start"            -> Start
    [] event.action = "Finish"           -> Finish
    [] event.action = "Exception"        -> Exception
    [] event.action = "SchedulerRestart" -> SchedulerRestart
    [] event.action = "ExecRelease"      -> ExecRelease(event.ranks, event.final)
    [] event.action = "EpilogStart"      -> EpilogStart(event.epilog, event.ranks)
    [] event.action = "Release"          -> Release(event.epilog, event.ranks)
    [] event.action = "EpilogFinish"     -> EpilogFinish(event.epilog)
    [] event.action = "PartialFree"      -> PartialFree(event.ranks)
    [] event.action = "Free"             -> Free
    [] event.action = "Clean"            -> Clean
    [] event.action = "Malformed"        -> FALSE       \* the spec has no words for it

(* Events: the different events of all logs, each with its action and what arguments that has.
   Traces: the logs, each as the numbers of its events.  (As constants TLC would evaluate them at every step.) *)

TraceInit(Traces) ==
  /\ Init
  /\ trace \in DOMAIN Traces
  /\ step = 0

TraceNext(Events, Traces) ==
  /\ step < Len(Traces[trace])
  /\ Happens(Events[Traces[trace][step + 1]])
  /\ step' = step + 1
  /\ UNCHANGED trace

(* How many of its events could happen is printed of each log. *)
TraceEnds(Events, Traces) == ENABLED TraceNext(Events, Traces) \/ PrintT(<<"reached", trace, step>>)
=============================================================================
