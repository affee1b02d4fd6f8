"""Check logs: replay them through the machine of :mod:`partialrelease.job`, and report every violation.

Replaying goes on after a violation from what then is the case. Memory is bounded by the jobs that are active at one
time, and a window of jobs that have ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from attrs import define, field, frozen

from .events import Alloc, Entry, EpilogStart, Event, PrologStart
from .fragment import Fragment
from .idset import ALL_RANKS, MAX_ID, IdSet
from .job import (
    INACTIVE,
    REQUESTED,
    RUNNING,
    Code,
    Holder,
    Job,
    LastRank,
    ProtocolViolation,
    apply,
    effect,
    guard,
    restrict,
)

if TYPE_CHECKING:
    from .resources import ResourceSet

__all__ = [
    "MEANING",
    "UNKNOWN",
    "Finding",
    "Hold",
    "NotALogStartError",
    "Report",
    "begin_report",
    "check_entries",
    "known_ranks",
]

_WINDOW: Final = 100
"""How many ended jobs are kept, for what may follow their ``clean``."""

MEANING: Final = {
    Code.AfterInactive: "The job was over: its log must not grow. Several jobs' logs in one file look like this too.",
    Code.MalformedContext: "The event does not say what RFC 21 wants it to say; readers may take it differently.",
    Code.UnknownHolder: "Whoever only counts starts and finishes ends another holder's hold here.",
    Code.DuplicateHolder: "Holders are matched by description: which of the two a finish ends, nobody can tell.",
    Code.WrongPhase: "The event cannot happen at this point of a job's life.",
    Code.ReleasedWhileReferenced: "These nodes could go to another job while they were still in use.",
    Code.FreeWhileActive: "What has no rank (rabbit storage) goes back with free, while its holder still uses it.",
    Code.GateClosed: "Shells may still run there, and an epilog that starts at finish would find its nodes gone.",
    Code.NotHeld: "The ranks were handed over before, dropped before, or never the job's.",
    Code.CleanWhileHeld: "A job must not end while somebody or something of it is left: nobody would give it back.",
    Code.LastRankFreed: "A scheduler that forgets a job with its last rank loses what has no rank (rabbit storage).",
    Code.ResourcesLost: "The ranks can be given to another job while they are still in use.",
}
"""What each violation means for a cluster."""


UNKNOWN: Final = float("-inf")
"""The time of what happened before the log begins."""


class NotALogStartError(Exception):
    """A log without job ids does not begin with ``submit``: it is a fragment, and was not declared as one."""

    def __init__(self, entry: Entry) -> None:
        super().__init__(entry)
        self.entry: Final = entry

    def __str__(self) -> str:
        return f"begins with {self.entry.event.name!r}, not with 'submit': it seems to be a fragment of a log"


@frozen
class Hold:
    """An active holder, and since when it is one: a timestamp, ``UNKNOWN`` where the log does not show it."""

    holder: Holder
    since: float


@frozen
class Finding:
    """One violation: the line and the time at which it stands, and the holders concerned."""

    line: int
    timestamp: float
    violation: ProtocolViolation
    holds: tuple[Hold, ...]


class _Steps:
    """Steps that many jobs take.

    Most jobs of a journal go the same way but for their ranks. As long as a job's log only ever says "all", its
    state is that of an allocation of all ranks, restricted to R's. So such jobs share their states, and a step
    between two of them is taken once. A job whose log names ranks, or breaks a rule, goes on alone.
    """

    _MOST: Final = 4096
    alloc: Final = Alloc()

    def __init__(self) -> None:
        # By the identities of state and event; the values keep these alive.
        self._known: dict[tuple[int, int], tuple[Job, Event, Job]] = {}
        self.plain: dict[tuple[int, int], tuple[Job, Event, Job]] = {}
        """Those of the steps that start and end no holder and no job."""

    def take(self, job: Job, event: Event) -> Job | None:
        """The shared state after ``event``, or ``None`` if the job must go on alone."""
        key = (id(job), id(event))
        known = self._known.get(key)
        if known is not None:
            return known[2]
        ranks = getattr(event, "ranks", None)
        names_ranks = ranks is not None and ranks is not ALL_RANKS and bool(ranks)
        if names_ranks or guard(job, event) is not None:
            return None
        after = effect(job, event)
        if not event.extra:  # what has more to say will hardly come again
            if len(self._known) >= self._MOST:
                self._known.clear()
                self.plain.clear()
            step = self._known[key] = (job, event, after)
            if after.actions is job.actions and not _exec_begins(job, after) and after.phase is not INACTIVE:
                self.plain[key] = step
        return after


@define
class Report:
    """What checking has found out about one job so far.

    ``job``: its id, where the log says. ``began``: the first event's timestamp. ``fragment``: where the log is one.
    ``resources``: R, where it is known. ``events``: how many. ``exec_since``: when the exec system was asked to
    start the job, and then when it started it.
    """

    job: int | None
    began: float
    _state: Job
    _steps: _Steps | None = None  # while the state is one of these steps
    fragment: Fragment | None = None
    resources: ResourceSet | None = None
    events: int = 0
    findings: list[Finding] = field(factory=list)
    exec_since: float = UNKNOWN
    _ranks: IdSet = ALL_RANKS  # what a shared state is restricted to
    _since: tuple[float, ...] = ()  # beside the state's actions

    @property
    def state(self) -> Job:
        """The job now; of a fragment, the likeliest state."""
        return self._state if self._steps is None else restrict(self._state, self._ranks)

    @property
    def ended(self) -> bool:
        """Whether the job is INACTIVE."""
        return self._state.phase is INACTIVE

    def step(self, line: int, time: float, event: Event) -> None:
        """Go on with one event."""
        self.events += 1
        before = self._state
        after = None
        if self._steps is not None:
            if type(event) is Alloc and event.ranks and not before.allocation:
                after = self._steps.take(before, self._steps.alloc)
                self._ranks = event.ranks
            else:
                after = self._steps.take(before, event)
            if after is None:
                before = self._state = self.state
                self._steps = None
        if after is None:
            after = self._step_alone(line, time, event)
        self._state = after
        if after.actions is not before.actions:
            started = isinstance(event, EpilogStart | PrologStart)
            self._since = _follow(before.actions, self._since, after.actions, time if started else UNKNOWN)
        if _exec_begins(before, after):
            self.exec_since = time

    def _step_alone(self, line: int, time: float, event: Event) -> Job:
        try:
            return apply(self._state, event) if self.fragment is None else self.fragment.apply(event)
        except ProtocolViolation as violation:
            holds = tuple(hold for hold in self.holds() if hold.holder in violation.holders)
            self.findings.append(Finding(line, time, violation, holds))
            return effect(self._state, event) if self.fragment is None else self.fragment.job

    def holds(self) -> tuple[Hold, ...]:
        """The active holders and since when they are."""
        holders = self.state.holders if self._state.holders else ()
        execs = len(holders) - len(self._since)
        return tuple(map(Hold, holders, (self.exec_since,) * execs + self._since))


def _exec_begins(before: Job, after: Job) -> bool:
    return after.exec is not before.exec and (after.exec is REQUESTED or after.exec is RUNNING)


def _follow(
    before: tuple[Holder, ...], since: tuple[float, ...], after: tuple[Holder, ...], time: float
) -> tuple[float, ...]:
    """Since when the actions ``after`` an event are active, given it for those ``before`` it."""
    if len(after) > len(before):
        return since + (time,) * (len(after) - len(before))
    if len(after) < len(before):
        gone = 0
        while gone < len(after) and after[gone] is before[gone]:
            gone += 1
        return since[:gone] + since[gone + 1 :]
    return since


def known_ranks(ranks: IdSet) -> bool:
    """Whether a set is really these ranks, and not what is left of "all" of an allocation that is not known."""
    return MAX_ID not in ranks


def begin_report(
    entry: Entry,
    begin: Job,
    *,
    fragment: bool = False,
    resources: ResourceSet | None = None,
    steps: _Steps | None = None,
) -> Report:
    """The report on the job whose first entry this is; the entry itself is still to be given to it.

    ``begin``: the job before any event, with its settings. Raises :class:`NotALogStartError`.
    """
    if entry.event.name == "submit":
        return Report(entry.job, entry.timestamp, begin, steps)
    if entry.job is None and not fragment:
        raise NotALogStartError(entry)
    # Whoever declares a fragment says that the job was running; a journal may begin anywhere.
    ranks = resources.ranks if resources else ALL_RANKS
    cut = Fragment.of(begin.last_rank, ranks, running=entry.job is None)
    return Report(entry.job, entry.timestamp, cut.job, None, cut, resources)


def check_entries(
    entries: Iterable[Entry],
    *,
    last_rank: LastRank = LastRank.KEEP,
    fragment: bool = False,
    resources: ResourceSet | None = None,
) -> Iterator[Report]:
    """Replay ``entries`` and yield a report a job: soon after the job has ended, or at the end of the entries.

    ``fragment`` allows a log without job ids to begin anywhere; the jobs of a journal always may.
    ``resources``: R, for a fragment that begins after its ``alloc``. Raises :class:`NotALogStartError`.
    """
    active: dict[int | None, Report] = {}
    ended: dict[int | None, Report] = {}
    begin = Job(last_rank)
    steps = _Steps()
    plain = steps.plain.get
    for entry in entries:
        line, job, time, event, r = entry
        report = active.get(job)
        if report is not None:
            step = plain((id(report._state), id(event)))
            if step is not None:
                report._state = step[2]
                report.events += 1
                continue
        elif (report := ended.get(job)) is None:
            report = begin_report(entry, begin, fragment=fragment, resources=resources, steps=steps)
            active[job] = report
        if r is not None:
            report.resources = r
        report.step(line, time, event)
        if report.ended and job in active:
            ended[job] = active.pop(job)
            if len(ended) > _WINDOW:
                yield ended.pop(next(iter(ended)))
    yield from ended.values()
    yield from active.values()
