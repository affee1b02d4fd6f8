"""Check logs: replay them through the machine of :mod:`partialrelease.job`, and report every violation.

Replaying goes on after a violation from what then is the case. Memory is bounded by the jobs that are active at one
time, and a window of jobs that have ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from attrs import define, field, frozen

from .events import Alloc, Clean, Entry, EpilogStart, PartialFree, PrologStart, Release
from .fragment import Fragment
from .idset import ALL_RANKS, MAX_ID, NO_RANKS, IdSet
from .job import (
    CHANGE_NOTHING,
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
    evolved,
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

_LONGEST_LIFE: Final = 64
"""How many entries of an active job are kept before it is replayed as it goes."""

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


@define
class Report:
    """What checking has found out about one job so far.

    ``job``: its id, where the log says. ``began``: the first event's timestamp. ``state``: the job now; of a fragment,
    the likeliest. ``fragment``: where the log is one. ``resources``: R, where it is known. ``events``: how many.
    ``exec_since``: when the exec system was asked to start the job, and then when it started it.
    """

    job: int | None
    began: float
    state: Job
    fragment: Fragment | None = None
    resources: ResourceSet | None = None
    events: int = 0
    findings: list[Finding] = field(factory=list)
    exec_since: float = UNKNOWN
    _since: tuple[float, ...] = ()  # beside the state's actions

    def step(self, entry: Entry) -> None:
        """Go on with one event."""
        line, _, time, event, resources = entry
        self.events += 1
        if resources is not None:
            self.resources = resources
        before = self.state
        try:
            after = apply(before, event) if self.fragment is None else self.fragment.apply(event)
        except ProtocolViolation as violation:
            holds = tuple(hold for hold in self.holds() if hold.holder in violation.holders)
            self.findings.append(Finding(line, time, violation.with_traceback(None), holds))
            after = effect(before, event) if self.fragment is None else self.fragment.job
        self.state = after
        if after.actions is not before.actions:
            started = isinstance(event, EpilogStart | PrologStart)
            self._since = _follow(before.actions, self._since, after.actions, time if started else UNKNOWN)
        if after.exec is not before.exec and (after.exec is REQUESTED or after.exec is RUNNING):
            self.exec_since = time

    def holds(self) -> tuple[Hold, ...]:
        """The active holders and since when they are."""
        holders = self.state.holders
        execs = len(holders) - len(self._since)
        return tuple(map(Hold, holders, (self.exec_since,) * execs + self._since))


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


def begin_report(entry: Entry, begin: Job, *, fragment: bool = False, resources: ResourceSet | None = None) -> Report:
    """The report on the job whose first entry this is; the entry itself is still to be given to it.

    ``begin``: the job before any event, with its settings. Raises :class:`NotALogStartError`.
    """
    if entry.event.name == "submit":
        return Report(entry.job, entry.timestamp, begin)
    if entry.job is None and not fragment:
        raise NotALogStartError(entry)
    # Whoever declares a fragment says that the job was running; a journal may begin anywhere, and R is not its jobs'.
    if entry.job is not None:
        resources = None
    ranks = resources.ranks if resources else ALL_RANKS
    cut = Fragment.of(begin.last_rank, ranks, running=entry.job is None)
    return Report(entry.job, entry.timestamp, cut.job, cut, resources)


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
    lives = _Lives(Job(last_rank))
    logs: dict[int | None, list[Entry]] = {}  # of jobs from `submit` on; they are replayed when they have ended
    active: dict[int | None, Report] = {}  # the others
    ended: dict[int | None, Report] = {}
    log_of, last = logs.get, Clean
    for entry in entries:
        job = entry[1]
        log = log_of(job)
        if log is not None:
            log.append(entry)
            if type(entry[3]) is not last and len(log) < _LONGEST_LIFE:
                continue
            report = lives.replay(logs.pop(job))
        else:
            known = active.pop(job, None) or ended.get(job)
            if known is not None:
                report = known
            else:
                if entry.event.name == "submit":
                    logs[job] = [entry]
                    continue
                report = begin_report(entry, lives.begin, fragment=fragment, resources=resources)
            report.step(entry)
        if report.state.phase is not INACTIVE:
            active[job] = report
            continue
        ended[job] = report
        if len(ended) > _WINDOW:
            yield ended.pop(next(iter(ended)))
    yield from ended.values()
    yield from map(lives.replay, logs.values())
    yield from active.values()


class _Lives:
    """Replays the lives of jobs, from ``submit`` on.

    Most lives are whole and legal: of these only the end is reported, so they are replayed by ``apply`` alone. And most
    begin alike but for their ranks, with the same events up to the first that names some. Such a beginning is replayed
    once; where it leads is where all like it lead, each with its own ranks.
    """

    _MOST: Final = 1024

    def __init__(self, begin: Job) -> None:
        self.begin = begin
        # By the identities of the events, which the log kept beside the job keeps alive.
        self._known: dict[tuple[int, ...], tuple[Job, list[Entry]]] = {}

    def replay(self, log: list[Entry]) -> Report:
        """The report after these entries."""
        resources: ResourceSet | None = None
        likeness: list[int] = []
        count = 0
        event: Any
        for _, _, _, event, r in log:
            kind = type(event)
            if kind in _MAY_NAME_RANKS and event.ranks and event.ranks is not ALL_RANKS:
                break
            if kind is Alloc:  # each is another event, for its ranks
                likeness.append(r is None)
                resources = r
            elif kind not in CHANGE_NOTHING:
                likeness.append(id(event))
            count += 1
        key = tuple(likeness)
        known = self._known.get(key)
        try:
            if known is None:
                job = self.begin
                for entry in log[:count]:
                    job = apply(job, entry[3])
                if job.phase is not INACTIVE or kind is Clean:  # else (an invalid job) nothing at all may follow
                    if len(self._known) >= self._MOST:
                        self._known.clear()
                    self._known[key] = job, log
            else:
                job = known[0] if resources is None else _with_ranks(known[0], resources.ranks)
            for entry in log[count:]:
                job = apply(job, entry[3])
        except ProtocolViolation:
            return self._tell(log)
        if job.phase is not INACTIVE:
            return self._tell(log)
        # R is known from the beginning: before it, no event can name ranks.
        return Report(log[0].job, log[0].timestamp, job, resources=resources, events=len(log))

    def _tell(self, log: list[Entry]) -> Report:
        report = begin_report(log[0], self.begin)
        for entry in log:
            report.step(entry)
        return report


_MAY_NAME_RANKS: Final = frozenset({Release, EpilogStart, PartialFree})


def _with_ranks(job: Job, ranks: IdSet) -> Job:
    """The job if its allocation had been these ranks, and no event had named any: each set is all of them or none."""
    actions = tuple([Holder(h.kind, h.description, ranks if h.ranks else NO_RANKS) for h in job.actions])
    return evolved(
        job,
        allocation=ranks,
        held=ranks if job.held else NO_RANKS,
        released=ranks if job.released else NO_RANKS,
        exec_ranks=ranks if job.exec_ranks else NO_RANKS,
        actions=actions,
    )
