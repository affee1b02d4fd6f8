---------------------------- MODULE Conformance ----------------------------
(***************************************************************************)
(* What an implementation is asked: which violation an event is that may   *)
(* not happen, and which event the job manager posts next.                 *)
(*                                                                         *)
(* The conformance vectors (spec/vectors) are made of what TLC says here.  *)
(* An event is a record, as in TracePartialRelease.  It is refused exactly *)
(* where it breaks a rule: whoever makes the vectors checks that, in every *)
(* state.                                                                  *)
(***************************************************************************)
EXTENDS PartialRelease, Integers, Sequences

(* Where an event breaks several rules, the first of these stands. *)
Codes == <<
  "AfterInactive",
  "MalformedContext",
  "UnknownHolder",
  "DuplicateHolder",
  "WrongPhase",
  "ReleasedWhileReferenced",
  "FreeWhileActive",
  "GateClosed",
  "NotHeld",
  "CleanWhileHeld",
  "LastRankFreed",
  "ResourcesLost">>

First(broken) ==
  IF broken = {}
    THEN ""
    ELSE Codes[CHOOSE n \in DOMAIN Codes :
                 /\ Codes[n] \in broken
                 /\ \A m \in 1..(n - 1) : Codes[m] \notin broken]

If(is, code) == IF is THEN {code} ELSE {}

Breaks(event) ==
  If(phase = "INACTIVE", "AfterInactive") \cup If(phase = "-" /\ event.action # "Submit", "WrongPhase") \cup
  CASE event.action = "Submit" ->
            If(phase # "-", "WrongPhase")
    [] event.action = "Alloc" ->
            If(event.ranks = {}, "MalformedContext")
       \cup If(allocation # {}, "WrongPhase")
    [] event.action = "PrologStart" ->
            If(event.prolog \in DOMAIN actions, "DuplicateHolder")
       \cup If(exec \notin {"idle", "requested"}, "WrongPhase")
    [] event.action = "PrologFinish" ->
            If(event.prolog \notin DOMAIN actions, "UnknownHolder")
    [] event.action = "Start" ->
            If(exec # "requested" \/ ActivePrologs # {}, "WrongPhase")
    [] event.action = "Finish" ->
            If(exec \notin {"requested", "running"}, "WrongPhase")
    [] event.action = "SchedulerRestart" ->
            If(Referenced # {}, "ResourcesLost")
    [] event.action = "ExecRelease" ->
            If(exec \in {"idle", "done"}, "WrongPhase")
       \cup If(event.final /\ (phase # "CLEANUP" \/ exec = "running"), "WrongPhase")
       \cup If(event.ranks # All /\ ~(event.ranks \subseteq execRanks), "NotHeld")
    [] event.action = "EpilogStart" ->
            If(event.epilog \in DOMAIN actions, "DuplicateHolder")
       \cup If(phase # "CLEANUP", "WrongPhase")
       \cup If(event.ranks # All /\ ~(event.ranks \subseteq held), "NotHeld")
    [] event.action = "Release" ->
         IF event.epilog \notin DOMAIN actions
           THEN {"UnknownHolder"}
           ELSE      If(phase # "CLEANUP", "WrongPhase")
                \cup If(event.ranks # All /\ ~(event.ranks \subseteq actions[event.epilog] \cap held), "NotHeld")
    [] event.action = "EpilogFinish" ->
            If(event.epilog \notin DOMAIN actions, "UnknownHolder")
    [] event.action = "PartialFree" ->
            If(event.ranks = {}, "MalformedContext")
       \cup If(NoHolder, "WrongPhase")
       \cup If(event.ranks \cap Referenced # {}, "ReleasedWhileReferenced")
       \cup If(~GateOpen, "GateClosed")
       \cup If(~(event.ranks \subseteq held), "NotHeld")
       \cup If(LastRank = "keep" /\ held \subseteq event.ranks, "LastRankFreed")
    [] event.action = "Free" ->
            If(allocation = {} \/ closed, "WrongPhase")
       \cup If(Referenced # {}, "ReleasedWhileReferenced")
       \cup If(~NoHolder, "FreeWhileActive")
       \cup If(~GateOpen, "GateClosed")
    [] event.action = "Clean" ->
            If(phase # "CLEANUP", "WrongPhase")
       \cup If(~NoHolder \/ exec = "requested" \/ (allocation # {} /\ ~closed), "CleanWhileHeld")
    [] event.action = "Malformed" ->
            {"MalformedContext"}
    [] OTHER -> {}

(* Which violation the event is; "" where it may happen. *)
Code(event) == First(Breaks(event))

-----------------------------------------------------------------------------

MayFree  == Code([action |-> "Free"]) = ""
MayClean == Code([action |-> "Clean"]) = ""

(* What is handed over next.  Where a rank is to be kept it is the lowest; JobManager leaves open which. *)
HandOver ==
  IF LastRank = "keep" /\ Releasable = held /\ held # {}
    THEN held \ {CHOOSE kept \in held : \A rank \in held : kept <= rank}
    ELSE Releasable

(* With no epilog-start queued, the job manager posts free, else clean, else partial-free, else nothing. *)
Posts ==
  CASE MayFree                           -> <<"free">>
    [] ~MayFree /\ MayClean              -> <<"clean">>
    [] ~MayFree /\ ~MayClean /\ HandOver # {} -> <<"partial-free", HandOver>>
    [] OTHER                             -> <<>>

(* What an implementation says of a state, and is asked beside it: of all these events, which violations they are. *)
Tells(events) ==
  [referenced |-> Referenced,
   releasable |-> Releasable,
   posts      |-> Posts,
   codes      |-> [n \in DOMAIN events |-> Code(events[n])]]
=============================================================================
