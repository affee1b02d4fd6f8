"""Hypothesis strategies for whoever tests an implementation of early, partial release.

Sets of ranks, R, logs that break no rule, and logs that break exactly one, which say where and which. A log is a
:class:`Log`; ``log.eventlog()`` is its text as ``flux job eventlog --format=json`` prints it, ``log.r()`` its R. All
of them shrink: to few events, few holders, few ranks.

Test that an implementation (here: this one) takes legal logs::

    >>> from hypothesis import given
    >>> from partialrelease import check_entries
    >>> @given(legal_logs())
    ... def test_my_checker_finds_nothing_in_a_legal_log(log):
    ...     (report,) = check_entries(log.entries(), last_rank=log.last_rank)
    ...     assert not report.findings
    >>> test_my_checker_finds_nothing_in_a_legal_log()

and that it finds what is planted, there and nowhere else::

    >>> @given(planted_logs())
    ... def test_my_checker_finds_the_violation(planted):
    ...     (report,) = check_entries(planted.log.entries(), last_rank=planted.log.last_rank)
    ...     (finding,) = report.findings
    ...     assert (finding.line, finding.violation.code) == (planted.line, planted.code)
    >>> test_my_checker_finds_the_violation()

Needs the extra ``[hypothesis]``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from attrs import frozen

from .events import (
    Alloc,
    Clean,
    Depend,
    DependencyAdd,
    DependencyRemove,
    Entry,
    EpilogFinish,
    EpilogStart,
    Event,
    Finish,
    FluxRestart,
    Free,
    Invalidate,
    JobException,
    JobspecUpdate,
    Malformed,
    Memo,
    PartialFree,
    Priority,
    PrologFinish,
    PrologStart,
    Release,
    ResourceUpdate,
    SetFlags,
    Start,
    Submit,
    Unknown,
    Urgency,
    Validate,
    make_event,
    to_context,
)
from .idset import ALL_RANKS, NO_RANKS, IdSet
from .job import Code, Exec, HolderKind, Job, LastRank, Phase, apply, decide, effect, guard

try:
    from hypothesis import assume
    from hypothesis import strategies as st
except ModuleNotFoundError as error:
    raise ImportError(
        f"partialrelease.strategies needs {error.name}: pip install 'partialrelease[hypothesis]'"
    ) from error

__all__ = [
    "DESCRIPTIONS",
    "Log",
    "Planted",
    "idsets",
    "legal_logs",
    "planted_logs",
    "probes",
    "resource_sets",
    "subsets",
]

DESCRIPTIONS: Final = ("a", "b", "c", "dws-epilog", "flush", "", 'odd "name"=é')
"""What the actions of the logs are called."""


# -- ranks --


@st.composite
def idsets(draw: st.DrawFn, *, min_size: int = 0, max_size: int = 4096) -> IdSet:
    """Sets of ranks: none, few, or up to thousands, in one run, at regular distances, or in fragments.

    >>> @given(idsets(min_size=1))
    ... def test(ranks):
    ...     assert IdSet(str(ranks)) == ranks
    >>> test()
    """
    shape = draw(st.sampled_from(["few", "few", "run", "scattered", "fragments"]))
    few = min(max_size, 8)
    if (shape == "few" and min_size <= few) or max_size == 0:
        return IdSet(draw(st.sets(st.integers(0, 15), min_size=min_size, max_size=few)))
    first = draw(st.integers(0, 1000))
    size = draw(st.integers(max(min_size, 1), max_size))
    if shape == "run":
        return IdSet(range(first, first + size))
    if shape == "scattered":
        step = draw(st.integers(2, 64))
        return IdSet(range(first, first + size * step, step))
    length = draw(st.integers(1, 64))
    bits = draw(st.binary(min_size=length, max_size=length))
    ids = [first + place for place in range(8 * length) if bits[place // 8] >> place % 8 & 1][:max_size]
    return IdSet(ids + [first + 8 * length + n for n in range(min_size - len(ids))])


_MOST_APART: Final = 10_000  # ids that are taken one by one: a set of all ids there could be is fine too


@st.composite
def subsets(draw: st.DrawFn, of: IdSet, *, min_size: int = 0) -> IdSet:
    """Subsets of a set of ranks (``min_size`` 0 or 1): all, none, one, all but one, a run, each n-th, any few.

    >>> @given(subsets(IdSet("0-3,7")))
    ... def test(ranks):
    ...     assert ranks <= IdSet("0-3,7")
    >>> test()
    """
    return _subset(draw, of, min_size)


def _subset(draw: st.DrawFn, of: IdSet, min_size: int = 0) -> IdSet:
    if not of:
        return of
    last = len(of) - 1
    shape = _pick(draw, ("one", "all", "run", "nth", "all but one", "few", "none"))
    if shape == "none" and min_size == 0:
        return NO_RANKS
    if shape == "all" or last == 0:
        return of
    position = draw(st.integers(0, last))
    if shape == "all but one":
        return of - IdSet([of.nth(position)])
    if shape == "run":
        return _between(of, position, draw(st.integers(position, last)))
    if shape == "nth":
        return IdSet(list(_between(of, position, min(last, position + _MOST_APART)))[:: draw(st.integers(2, 9))])
    if shape == "few":
        return IdSet({of.nth(position), *(of.nth(draw(st.integers(0, last))) for _ in range(draw(st.integers(1, 5))))})
    return IdSet([of.nth(position)])


def _between(of: IdSet, first: int, last: int) -> IdSet:
    """From the one place to the other."""
    return of & IdSet(range(of.nth(first), of.nth(last) + 1))


@st.composite
def resource_sets(draw: st.DrawFn, ranks: st.SearchStrategy[IdSet] | None = None) -> str:
    """The text of an R (RFC 20): its ranks in one entry or several, each with its cores, with and without hosts.

    >>> @given(resource_sets())
    ... def test(r):
    ...     assert json.loads(r)["version"] == 1
    >>> test()
    """
    rest = draw(idsets(min_size=1) if ranks is None else ranks)
    every = rest
    entries: list[dict[str, Any]] = []
    while rest:
        part = _subset(draw, rest, 1) if len(entries) < 3 else rest
        entries.append({"rank": str(part), "children": {"core": draw(st.sampled_from(["0", "0-3", "0-1,4-7"]))}})
        rest -= part
    execution: dict[str, Any] = {"R_lite": entries, "starttime": 0, "expiration": draw(st.sampled_from([0, 3600]))}
    if draw(st.booleans()):
        execution["nodelist"] = [f"node[{every}]"]
    if draw(st.booleans()):
        execution["properties"] = {"fast": str(_subset(draw, every, 1))}
    return json.dumps({"version": 1, "execution": execution})


# -- logs --


_T = TypeVar("_T")
_Move = Event | Callable[[st.DrawFn], Event]


@frozen
class Log:
    """The log of one job, and the setting under which it is what it is said to be."""

    events: tuple[Event, ...]
    last_rank: LastRank = LastRank.KEEP

    def entries(self, job: int | None = None, began: float = 1_700_000_000.0) -> tuple[Entry, ...]:
        """The events as entries: a line each, a quarter of a second apart."""
        return tuple(Entry(n, job, began + n / 4, event) for n, event in enumerate(self.events, 1))

    def eventlog(self, began: float = 1_700_000_000.0) -> str:
        """The text of ``flux job eventlog --format=json`` (RFC 18). R is not in it."""
        lines = []
        for _, _, time, event, _ in self.entries(began=began):
            context = to_context(event)
            said = {} if context is None else {"context": context}
            lines.append(json.dumps({"timestamp": time, "name": event.name, **said}, ensure_ascii=False))
        return "".join(f"{line}\n" for line in lines)

    def r(self) -> str | None:
        """The text of the job's R (RFC 20), if it was allocated one."""
        for event in self.events:
            if isinstance(event, Alloc):
                lite = [{"rank": str(event.ranks), "children": {"core": "0"}}]
                execution = {"R_lite": lite, "starttime": 0, "expiration": 0, "nodelist": [f"node[{event.ranks}]"]}
                return json.dumps({"version": 1, "execution": execution})
        return None


@frozen
class Planted:
    """A log with exactly one violation: ``code``, by the event of ``line`` (from 1). What follows is legal again."""

    log: Log
    line: int
    code: Code


@st.composite
def legal_logs(
    draw: st.DrawFn,
    *,
    ranks: st.SearchStrategy[IdSet] | None = None,
    last_rank: LastRank | None = None,
    extensions: bool = True,
    complete: bool | None = None,
) -> Log:
    """Logs that break no rule, with several epilogs at a time on parts of the ranks.

    ``ranks``: those of R (:func:`idsets`, if not said). ``extensions``: whether there is more than today's Flux writes
    (``epilog-start`` with ranks, ``release`` by an epilog, ``partial-free``). ``complete``: whether the job has ended;
    either, if not said.

    >>> @given(legal_logs(extensions=False, complete=True))
    ... def test(log):
    ...     assert '"partial-free"' not in log.eventlog()
    ...     assert log.events[-1].name in ("clean", "invalidate")
    >>> test()
    """
    begin = Job(draw(st.sampled_from(LastRank)) if last_rank is None else last_rank)
    walk = _Walk(draw, begin, idsets(min_size=1) if ranks is None else ranks, extensions)
    walk.go(draw(st.integers(0, 40)))
    if draw(st.booleans()) if complete is None else complete:
        walk.end()
    return Log(tuple(walk.events), begin.last_rank)


@st.composite
def planted_logs(
    draw: st.DrawFn, code: Code | None = None, *, ranks: st.SearchStrategy[IdSet] | None = None
) -> Planted:
    """Logs with exactly one violation (of ``code``, if said), and where it is. What follows it is legal.

    >>> @given(planted_logs(Code.ReleasedWhileReferenced))
    ... def test(planted):
    ...     event = planted.log.events[planted.line - 1]
    ...     assert event.name in ("free", "partial-free")
    >>> test()
    """
    wanted = draw(st.sampled_from(_RAREST_FIRST)) if code is None else code
    begin = Job(LastRank.KEEP if wanted is Code.LastRankFreed else draw(st.sampled_from(LastRank)))
    walk = _Walk(draw, begin, idsets(min_size=1) if ranks is None else ranks, extensions=True)
    walk.go(draw(st.integers(2, 30)))
    if wanted is Code.LastRankFreed or wanted is Code.FreeWhileActive:
        walk.off_node()
    if wanted is Code.AfterInactive or draw(st.booleans()):
        walk.end()
    # From somewhere in the log on, the first place where something would break this rule. Nothing comes before submit.
    jobs = _states(begin, walk.events)
    places = range(1, len(jobs))
    start = draw(st.integers(0, len(places) - 1))
    for place in [*places[start:], *places[:start]]:
        if faults := _faults(jobs[place], wanted):
            break
    assume(faults)
    event = _pick(draw, faults)
    log = _Walk(draw, effect(jobs[place], event), walk.ranks, extensions=True)
    log.events = [*walk.events[:place], event]
    log.go(draw(st.integers(0, 8)))
    if draw(st.booleans()):
        log.end()
    return Planted(Log(tuple(log.events), begin.last_rank), place + 1, wanted)


_RAREST_FIRST: Final = (Code.LastRankFreed, Code.ResourcesLost, *(c for c in Code))


def _states(job: Job, events: list[Event]) -> list[Job]:
    """The jobs before the first event, before the second, ..., and after the last."""
    jobs = [job]
    for event in events:
        jobs.append(apply(jobs[-1], event))
    return jobs


def _faults(job: Job, code: Code) -> list[Event]:
    """What would break this rule in this state, and can be written in a log."""
    nameless = Alloc(NO_RANKS)  # an R without ranks is no R
    return [e for e in probes(job) if e != nameless and (found := guard(job, e)) and found.code is code]


class _Walk:
    """A random walk of legal events."""

    def __init__(self, draw: st.DrawFn, job: Job, ranks: st.SearchStrategy[IdSet], extensions: bool) -> None:
        self.draw = draw
        self.job = job
        self.ranks = ranks
        self.extensions = extensions
        self.events: list[Event] = []

    def add(self, event: Event) -> None:
        self.job = apply(self.job, event)
        self.events.append(event)

    def go(self, steps: int) -> None:
        """So many steps further, if the job does not end."""
        if self.job.phase is Phase.UNBORN:
            self.add(Submit())
        for _ in range(steps):
            if self.job.phase is Phase.INACTIVE:
                return
            move = _pick(self.draw, self._moves())
            event = move if isinstance(move, Event) else move(self.draw)
            if guard(self.job, event) is None:
                self.add(event)

    def off_node(self) -> None:
        """Only an epilog is left, on no rank, unless the job has ended: few walks get there by themselves."""
        if self.job.phase is not Phase.INACTIVE and not self.job.allocation:
            self.add(Alloc(self.draw(self.ranks)))
        while self.job.phase is not Phase.INACTIVE and (self.job.holders or not self.job.gate_open):
            self.add(next(event for event in _endings(self.job) if guard(self.job, event) is None))
        if self.job.phase is Phase.CLEANUP:
            self.add(EpilogStart("dws-epilog", NO_RANKS))

    def end(self) -> None:
        """Every holder finishes, and the job manager does the rest."""
        while self.job.phase is not Phase.INACTIVE:
            self.add(next(event for event in _endings(self.job) if guard(self.job, event) is None))

    def _moves(self) -> list[_Move]:
        """What may come next, the likelier the oftener it is in the list; nearly all of it is legal."""
        if not self.job.allocation:
            return self._before_the_allocation()
        if self.job.phase is Phase.CLEANUP:
            return self._in_cleanup()
        forward = Start() if self.job.exec is Exec.REQUESTED else Finish()
        return [Finish(), *[forward] * 8, *self._actions(), *self._gives_back(), *self._others()]

    def _before_the_allocation(self) -> list[_Move]:
        forward = _FORWARD.get(self.job.phase, self._alloc)
        return [self._alloc, *[forward] * 12, *self._actions(), *self._others(), Invalidate()]

    def _in_cleanup(self) -> list[_Move]:
        job = self.job
        moves: list[_Move] = []
        if job.exec is Exec.REQUESTED or job.exec is Exec.RUNNING:
            moves += [Finish(), Finish(9), Finish()]
        if job.exec is Exec.REQUESTED:
            moves.append(Start())
        if job.exec is Exec.FINISHED or job.exec is Exec.REQUESTED:
            moves += [Release(final=True)] * 3
        if self.extensions and job.holders and job.releasable:
            moves += [self._partial_free] * 4
        if not job.holders:
            moves += [Free(), Clean()]
        return [*moves, *self._actions(), *self._gives_back(), *self._others()]

    def _alloc(self, draw: st.DrawFn) -> Event:
        return Alloc(draw(self.ranks))

    def _partial_free(self, draw: st.DrawFn) -> Event:
        """Most often a part of what may go: so ranks go back in many fragments."""
        free = self.job.releasable
        if self.job.last_rank is LastRank.KEEP and free == self.job.held and len(free) > 1:
            free -= IdSet([free.min()])
        return PartialFree(_subset(draw, free, 1))

    def _actions(self) -> list[_Move]:
        """Prologs and epilogs that start and finish: sooner start, while they are few."""
        job = self.job
        moves: list[_Move] = []
        if job.phase is Phase.CLEANUP:
            moves += [self._epilog_start] * 4
        if job.exec is Exec.IDLE or job.exec is Exec.REQUESTED:
            moves.append(lambda draw: PrologStart(_pick(draw, DESCRIPTIONS)))
        for holder in job.actions:
            end = PrologFinish if holder.kind is HolderKind.PROLOG else EpilogFinish
            moves.append(end(holder.description))
        return moves

    def _epilog_start(self, draw: st.DrawFn) -> Event:
        description = _pick(draw, DESCRIPTIONS)
        kind = _pick(draw, ("none said", "all", "some", "some") if self.extensions else ("none said",))
        if kind == "none said":
            return EpilogStart(description)
        return EpilogStart(description, ALL_RANKS if kind == "all" else _subset(draw, self.job.held))

    def _gives_back(self) -> list[_Move]:
        """Holders that drop ranks, part by part."""
        job = self.job
        moves: list[_Move] = []
        if not job.allocation:  # "all" are four billion then
            return moves
        if job.exec is not Exec.IDLE and job.exec is not Exec.DONE:
            moves += [lambda draw: Release(_subset(draw, job.exec_ranks))] * 2
        if self.extensions and any(h.kind is HolderKind.EPILOG and h.ranks for h in job.actions):
            moves += [self._epilog_release] * 4
        return moves

    def _epilog_release(self, draw: st.DrawFn) -> Event:
        holder = _pick(draw, [h for h in self.job.actions if h.kind is HolderKind.EPILOG and h.ranks])
        ranks = ALL_RANKS if _pick(draw, (0, 0, 0, 1)) else _subset(draw, holder.ranks, 1)
        return Release(ranks, False, holder.description)

    def _others(self) -> list[_Move]:
        """What changes nothing, or not the ranks; and the exceptions."""
        return [_noise, _noise, lambda draw: _pick(draw, _EXCEPTIONS)]


def _pick(draw: st.DrawFn, of: Sequence[_T]) -> _T:
    return of[draw(st.integers(0, len(of) - 1))]  # quicker than `sampled_from`


_FORWARD: Final[dict[Phase, Event]] = {
    Phase.NEW: Validate(),
    Phase.DEPEND: Depend(),
    Phase.PRIORITY: Priority(),
}
_NOISE: Final[list[Event]] = [
    Unknown("debug.alloc-request"),
    Unknown("annotations", extra={"annotations": {"user": {"x": [1, None]}}}),
    Memo(extra={"note": "é"}),
    DependencyAdd(extra={"description": "after=1"}),
    DependencyRemove(extra={"description": "after=1"}),
    SetFlags(extra={"flags": ["debug"]}),
    ResourceUpdate(extra={"expiration": 1.5}),
]
_AHEAD: Final[list[Event]] = [Urgency(), JobspecUpdate(), FluxRestart(), Priority(), Validate(), Depend()]
_EXCEPTIONS: Final[list[Event]] = [
    JobException("note", 7),
    JobException("scheduler-restart", 1),
    JobException("cancel", 0),
    JobException("scheduler-restart", 0),  # legal where no rank is referenced
]


def _noise(draw: st.DrawFn) -> Event:
    return _pick(draw, _NOISE + _AHEAD)


def _endings(job: Job) -> list[Event]:
    """What brings a job to its end; the first of them that is legal."""
    events: list[Event] = [Release(final=True), Finish()]
    for holder in job.actions:
        end = PrologFinish if holder.kind is HolderKind.PROLOG else EpilogFinish
        events.append(end(holder.description))
    if (next_ := decide(job)) is not None and not isinstance(next_, PartialFree):
        events.append(next_)
    return [*events, JobException("cancel", 0)]


# -- everything that may be tried --


def probes(job: Job) -> list[Event]:
    """Events to try on a job in this state: each that there is, legal or not, with the ranks and names that matter.

    Always the same for the same state. An implementation in a state can be asked for its verdict on all of them:

    >>> job = apply(apply(Job(), Submit()), Alloc(IdSet("0-3")))
    >>> [str(event.ranks) for event in probes(job) if isinstance(event, PartialFree)]
    ['0', '0-3', '4', '', '1-3']
    """
    alloc = job.allocation or IdSet([0])
    held, lacking = job.held, IdSet([alloc.max() + 1])
    telling = [IdSet([held.min()]) if held else alloc, held, lacking, job.referenced, job.releasable, job.released]
    telling += [IdSet([part.min()]) for part in (job.releasable, job.referenced) if part]
    telling += [held - IdSet([held.min()]) if held else held, NO_RANKS]
    sets = list(dict.fromkeys(telling))
    active = [holder.description for holder in job.actions[:2]]
    names = list(dict.fromkeys([*active, "nobody"]))
    events: list[Event] = [*_SIMPLE, Alloc(alloc), *_MALFORMED]
    events += [PrologStart(name) for name in names]
    events += [PrologFinish(name) for name in names]
    events += [EpilogStart(name) for name in names]
    events += [EpilogFinish(name) for name in names]
    events += [PartialFree(part) for part in sets]
    events += [EpilogStart("nobody", part) for part in [ALL_RANKS, *sets]]
    events += [Release(part, final) for part in [ALL_RANKS, *sets] for final in (False, True)]
    for holder in job.actions[:2]:
        own = [holder.ranks] if job.allocation else []  # while nothing is allocated "all" cannot be told
        events += [Release(part, False, holder.description) for part in dict.fromkeys([ALL_RANKS, *sets, *own])]
    final = {"ranks": str(alloc), "final": True, "description": names[0]}
    return [*events, Release(alloc, False, "nobody"), make_event("release", final)]


_SIMPLE: Final[list[Event]] = [
    *(Submit(), Validate(), Invalidate(), Depend(), Priority(), Urgency(), JobspecUpdate(), FluxRestart()),
    *_NOISE,
    *(Start(), Finish(), Free(), Clean(), Alloc(NO_RANKS)),
    *(JobException("cancel", 0), JobException("scheduler-restart", 0), JobException("scheduler-restart", 3)),
]
_WRONG: Final[list[tuple[str, Mapping[str, Any]]]] = [
    ("submit", {"userid": 1, "urgency": 16}),
    ("submit", {"userid": 1, "urgency": 16, "flags": 0, "version": 2}),
    ("priority", {}),
    ("prolog-start", {"description": 7}),
    ("prolog-finish", {"description": "a"}),
    ("alloc", {"annotations": []}),
    ("start", {"x": 1}),
    ("finish", {"status": "0"}),
    ("exception", {"type": "cancel", "severity": 8}),
    ("release", {"ranks": "3-1", "final": False}),
    ("release", {"ranks": "0"}),
    ("epilog-start", {"description": "z", "ranks": [0]}),
    ("epilog-finish", {"status": 0}),
    ("partial-free", {"ranks": "all"}),
    ("free", {"ranks": "0", "final": False}),
    ("clean", {"x": None}),
]
_MALFORMED: Final[list[Event]] = [make_event(name, context) for name, context in _WRONG]
assert all(isinstance(event, Malformed) for event in _MALFORMED)
