"""Check the scheduler's side: the messages of the resource allocation protocol (RFC 27), and a job's log beside them.

:class:`SchedChecker` is given the messages one by one and follows what the scheduler must believe: which cores of
which ranks each job has, by ``sched.alloc``, ``sched.free`` and the hello of a scheduler that was reloaded. Whatever a
message cannot be, given those before it, is a finding; it goes on from what then is the case. :class:`JobLog` follows
one job's eventlog, for :meth:`SchedJob.compare`: was anything freed that the job still referenced, or never freed?

What a trace does not show is not held against it. Jobs that were allocated before it are checked as far as can be.
While no scheduler is loaded Flux frees without a message; so when a hello says that more is free than was seen to be
freed, that is believed, until a later message or the job's log contradicts it.

No I/O, no clock. Memory is bounded by the jobs that have resources at one time, and by the ids of those that had.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from attrs import define, evolve, field, frozen

from .cores import NO_CORES, CoreBooks, CoreSet
from .events import Alloc, Clean, Entry, EpilogStart, Event, Free, Malformed, PartialFree
from .idset import ALL_RANKS, NO_RANKS, IdSet
from .job import Holder, Job, LastRank, Phase, effect

if TYPE_CHECKING:
    from .resources import ResourceSet

__all__ = [
    "SCHED_MEANING",
    "AllocEnd",
    "AllocGrant",
    "AllocRequest",
    "FreeRequest",
    "HelloEnd",
    "HelloJob",
    "HelloRequest",
    "JobLog",
    "LogsBeside",
    "LogsOfFile",
    "SchedChecker",
    "SchedCode",
    "SchedDrop",
    "SchedFinding",
    "SchedJob",
    "SchedMessage",
]


class SchedCode(StrEnum):
    """What can be wrong on the scheduler's side."""

    AllocatedTwice = "AllocatedTwice"
    DoubleBooked = "DoubleBooked"
    FreedNotAllocated = "FreedNotAllocated"
    FreedTwice = "FreedTwice"
    RankSplit = "RankSplit"
    FreedAfterFinal = "FreedAfterFinal"
    NoFinal = "NoFinal"
    NeverFreed = "NeverFreed"
    ReleasedWhileReferenced = "ReleasedWhileReferenced"
    FreedWhileHeld = "FreedWhileHeld"
    HelloNotAllocated = "HelloNotAllocated"
    HelloTwice = "HelloTwice"
    HelloFreesTooMuch = "HelloFreesTooMuch"
    HelloFreesTooLittle = "HelloFreesTooLittle"
    HelloMissesJob = "HelloMissesJob"
    HelloWithoutPartialOk = "HelloWithoutPartialOk"


SCHED_MEANING: Final = {
    SchedCode.AllocatedTwice: "A job is allocated once; what the first allocation gave may never come back.",
    SchedCode.DoubleBooked: "Two jobs have the same cores at one time.",
    SchedCode.FreedNotAllocated: "Whoever has these resources could lose them to another job.",
    SchedCode.FreedTwice: "Between the two, the resources could be given to another job, which loses them now.",
    SchedCode.RankSplit: "A scheduler may assume that a rank comes back whole (RFC 27).",
    SchedCode.FreedAfterFinal: "What the job had may be another's by now; a scheduler may refuse this, or free it.",
    SchedCode.NoFinal: "The scheduler waits for more of this job, and keeps what has no rank (rabbit storage).",
    SchedCode.NeverFreed: "Unless its housekeeping still runs, nobody will give them back.",
    SchedCode.ReleasedWhileReferenced: "These nodes could go to another job while they were still in use.",
    SchedCode.FreedWhileHeld: "What a job has not handed over is not housekeeping's to free.",
    SchedCode.HelloNotAllocated: "The scheduler takes for allocated what is free, and nobody will free it.",
    SchedCode.HelloTwice: "Of two responses for one job the scheduler may take either, and free what is in use.",
    SchedCode.HelloFreesTooMuch: "The scheduler can give ranks away that were still in use.",
    SchedCode.HelloFreesTooLittle: "The scheduler takes for allocated what is free, or has another job by now.",
    SchedCode.HelloMissesJob: "The scheduler can give the job's resources away while they were still in use.",
    SchedCode.HelloWithoutPartialOk: "A scheduler that knows no 'free' takes the whole R for allocated.",
}
"""What each finding means for a cluster."""

_WINDOW: Final = 100
"""How many ended jobs are kept, for what may follow their end."""

_CUT: Final = 0.001
"""The times of a trace are cut to milliseconds: what it shows may have happened this much later."""

_QUARTER: Final = 900.0
"""Time zones differ by quarters of an hour."""

_A_YEAR: Final = 365 * 86400.0
"""An earlier time is no date but an offset: log and trace cannot be compared by time then."""


# -- messages --


@frozen
class AllocRequest:
    """``sched.alloc``: the job asks for resources."""

    job: int
    t_submit: float | None = None


@frozen
class AllocGrant:
    """The scheduler allocates. ``cores``: those of R; ``None`` where the response has no R."""

    job: int
    cores: CoreSet | None
    resources: ResourceSet | None = None
    starttime: float | None = None


@frozen
class AllocEnd:
    """The scheduler denies or cancels the request."""

    job: int


@frozen
class FreeRequest:
    """``sched.free``: these cores go back."""

    job: int
    cores: CoreSet
    final: bool = False
    starttime: float | None = None


@frozen
class HelloRequest:
    """A scheduler was loaded, and asks which jobs have resources."""

    partial_ok: bool = False


@frozen
class HelloJob:
    """One response to it: the job has resources, but for the ranks that are ``free``."""

    job: int
    free: IdSet | None = None
    t_submit: float | None = None


@frozen
class HelloEnd:
    """The last response: there are no more jobs. ``complete`` is false where it is an error."""

    complete: bool = True


@frozen
class SchedDrop:
    """The scheduler raises a fatal ``scheduler-restart`` exception: it could not take the job over."""

    job: int


class SchedMessage(NamedTuple):
    """One message, the line at which it stands, and its time: seconds since the epoch, if the trace's clock was UTC."""

    line: int
    time: float
    body: AllocRequest | AllocGrant | AllocEnd | FreeRequest | HelloRequest | HelloJob | HelloEnd | SchedDrop


# -- the job's log --


class _Moment(NamedTuple):
    time: float
    held: IdSet
    holders: tuple[Holder, ...]


@define
class JobLog:
    """What a job's log says about who had its ranks when. ``name``: the log's, for people.

    ``began``, ``ended``: the times of its first and its last event. ``whole``: it begins with ``submit``, and so can
    tell who had the ranks. ``bypass``: it was allocated past the scheduler.
    """

    name: str
    state: Job = field(factory=Job)
    began: float = 0.0
    ended: float = 0.0
    resources: ResourceSet | None = None
    whole: bool = False
    bypass: bool = False
    _references: Job = field(factory=Job)
    _moments: list[_Moment] = field(factory=list)

    def step(self, entry: Entry) -> None:
        """Go on with one event."""
        event = entry.event
        if isinstance(event, Malformed) and event.meant is not None:
            event = event.meant
        if not self.began:
            self.began = entry.timestamp
            self.whole = event.name == "submit"
        self.ended = entry.timestamp
        self.resources = entry.resources or self.resources
        self.bypass = self.bypass or (isinstance(event, Alloc) and event.bypass is True)
        # Who references what does not depend on whether it was handed over: that may have been wrong.
        if not isinstance(event, PartialFree | Free | Clean):
            self._references = effect(self._references, self._said(event))
        self.state = effect(self.state, event)
        moment = _Moment(entry.timestamp, self.state.held, self._references.holders)
        if not self._moments or self._moments[-1][1:] != moment[1:]:
            self._moments.append(moment)

    def _said(self, event: Event) -> Event:
        if isinstance(event, EpilogStart) and (event.ranks is None or event.ranks == ALL_RANKS):
            return evolve(event, ranks=self.state.held) if self.state.allocation else event
        return event

    def at(self, time: float) -> tuple[IdSet, tuple[Holder, ...]]:
        """What the job held then, and the active holders."""
        number = bisect_right(self._moments, time, key=lambda moment: moment.time)
        return self._moments[number - 1][1:] if number else (NO_RANKS, ())


# -- the trace --


@frozen
class SchedFinding:
    """One thing that is wrong: the message's line, time and topic, and the holders, where the job's log names them."""

    line: int
    time: float
    event: str
    code: SchedCode
    ranks: IdSet
    message: str
    holders: tuple[Holder, ...] = ()


class _Freed(NamedTuple):
    line: int
    time: float
    ranks: IdSet


@define
class SchedJob:
    """One job as the scheduler sees it.

    ``line``, ``time``: where it came up. ``granted``: whether it was allocated in the trace.
    ``allocated``: its cores, ever; ``None`` where the trace does not show them. ``left``: those that it still has.
    ``freed``, ``freed_ranks``: those that came back. ``final``: the line of the final free.
    ``away``: ranks that are free by the word of the last hello alone; ``missed``: it left the job out.
    ``dropped``: the scheduler could not take the job over. ``log``: the name of the log that it was compared with.
    """

    job: int
    line: int
    time: float
    allocated: CoreSet | None = None
    granted: bool = False
    left: CoreSet = NO_CORES
    freed: CoreSet = NO_CORES
    freed_ranks: IdSet = NO_RANKS
    fragments: list[_Freed] = field(factory=list)
    final: int | None = None
    away: IdSet = NO_RANKS
    missed: bool = False
    dropped: bool = False
    t_submit: float | None = None
    starttime: float | None = None
    resources: ResourceSet | None = None
    log: str | None = None
    findings: list[SchedFinding] = field(factory=list)
    _hello: tuple[int, float] = (0, 0.0)

    @property
    def over(self) -> bool:
        """Whether the scheduler has forgotten the job."""
        return self.final is not None or self.missed or self.dropped

    def add(self, line: int, time: float, event: str, code: SchedCode, ranks: IdSet, message: str) -> None:
        """Add a finding."""
        self.findings.append(SchedFinding(line, time, event, code, ranks, message))

    def free(self, line: int, time: float, body: FreeRequest) -> None:
        """A fragment comes back."""
        cores, ranks = body.cores, body.cores.ranks
        self._contradict(ranks, f"{_ranks(ranks)} freed at line {line}")
        known = self.allocated
        if known is None:
            twice = cores & self.freed
            split = (cores - self.freed).ranks & self.freed.ranks
        else:
            twice = (cores & known) - self.left
            split = ((known.on(ranks) - cores) & self.left).ranks
            if extra := cores - known:
                self._free_finding(line, time, SchedCode.FreedNotAllocated, extra, "was never allocated to the job")
        if twice:
            self._free_finding(line, time, SchedCode.FreedTwice, twice, "was freed before")
        if split:
            message = f"only a part of {_ranks(split)} is freed: {_cut(cores.on(split))}"
            self.add(line, time, "sched.free", SchedCode.RankSplit, split, message)
        self.left -= cores
        self.freed |= cores
        self.freed_ranks |= ranks
        self.fragments.append(_Freed(line, time, ranks))
        self.starttime = self.starttime or body.starttime
        if body.final:
            self.final = line
            if self.left:
                rest = self.left
                self._free_finding(line, time, SchedCode.NeverFreed, rest, "is left although this free is final")

    def _free_finding(self, line: int, time: float, code: SchedCode, cores: CoreSet, what: str) -> None:
        self.add(line, time, "sched.free", code, cores.ranks, f"{_cut(cores)} {what}")

    def _contradict(self, ranks: IdSet, how: str) -> None:
        """Ranks that a hello had taken for free were not, it turns out."""
        wrong = self.away if self.missed else self.away & ranks
        if self.missed or wrong:
            line, time = self._hello
            code = SchedCode.HelloMissesJob if self.missed else SchedCode.HelloFreesTooMuch
            said = "leaves the job out" if self.missed else f"says that it has {_ranks(wrong)} no more"
            self.add(line, time, "job-manager.sched-hello", code, wrong, f"the hello {said}, but {how}")
            self.left |= self.allocated.on(wrong) if self.allocated is not None else NO_CORES
            self.away -= wrong
            self.missed = False

    def hello(self, line: int, time: float, free: IdSet) -> None:
        """A scheduler is told of the job."""
        event = "job-manager.sched-hello"
        self._contradict(self.away - free, f"the one at line {line} does not")
        known = self.allocated
        if known is not None and (extra := free - known.ranks):
            self.add(line, time, event, SchedCode.HelloFreesTooMuch, extra, f"{_ranks(extra)} free, never the job's")
            free &= known.ranks
        if less := self.freed_ranks - free:
            message = f"{_ranks(less)} freed before, and the hello does not say so"
            self.add(line, time, event, SchedCode.HelloFreesTooLittle, less, message)
        self.away = free - self.freed_ranks
        self.freed_ranks &= free
        self.freed = self.freed.on(free)
        self._hello = line, time
        if known is not None:
            self.left = known - known.on(free)

    def miss(self, line: int, time: float) -> None:
        """A hello is over in which the job was not."""
        self.missed = True
        self.away = self.left.ranks
        self._hello = line, time

    def finish(self, last_rank: LastRank) -> None:
        """The trace is over. With ``defer`` the final free may still come while the job's epilogs run."""
        if last_rank is not LastRank.DEFER:
            self._no_final()

    def _no_final(self) -> None:
        if self.allocated and self.fragments and not self.left and self.final is None and not self.dropped:
            line, time, ranks = self.fragments[-1]
            message = f"everything was freed ({_ranks(ranks)} last), but no free was final"
            self.add(line, time, "sched.free", SchedCode.NoFinal, ranks, message)

    def compare(self, log: JobLog, zone: float, end: float) -> None:
        """Compare with the job's log, a whole one.

        ``zone``: how many seconds the trace's clock is ahead of UTC. ``end``: the time of its last message.
        """
        self.log = log.name
        timed = min(log.began, end) > _A_YEAR
        over = log.state.phase is Phase.INACTIVE
        if timed:
            seen = float("inf") if over else log.ended  # it may have been taken before the trace was
            for line, time, ranks in self.fragments:
                if time - zone <= seen:
                    self._compare_free(log, line, time, ranks, zone)
            if self._hello[1] - zone <= seen:
                self._compare_hello(log, zone)
        if over and (log.ended <= end - zone or not timed) and not log.state.lost and not self.over:
            if self.left:
                message = f"{_cut(self.left)} was never freed, although the job went clean"
                place = self.line, self.time, "sched.alloc"
                self.add(*place, SchedCode.NeverFreed, self.left.ranks, message)
            elif not any(finding.code is SchedCode.NoFinal for finding in self.findings):
                self._no_final()

    def _compare_free(self, log: JobLog, line: int, time: float, ranks: IdSet, zone: float) -> None:
        held, holders = log.at(time - zone + _CUT)
        users = tuple(holder for holder in holders if not holder.ranks.isdisjoint(ranks))
        code = SchedCode.FreedWhileHeld
        if users:
            in_use = NO_RANKS
            for holder in users:
                in_use |= holder.ranks & ranks
            code, ranks = SchedCode.ReleasedWhileReferenced, in_use
            message = f"{_ranks(in_use)} freed while still referenced by {' and '.join(map(str, users))}"
        elif ranks := ranks & held:
            message = f"{_ranks(ranks)} freed, but by its log the job had not handed over as much"
        else:
            return
        self.findings.append(SchedFinding(line, time, "sched.free", code, ranks, message, users))

    def _compare_hello(self, log: JobLog, zone: float) -> None:
        if wrong := self.away & log.at(self._hello[1] - zone + _CUT)[0]:
            self._contradict(wrong, f"by its log it holds {_ranks(wrong)}")


@define
class _Hello:
    line: int
    partial_ok: bool = True
    whole: bool = False  # its beginning is in the trace
    jobs: set[int] = field(factory=set)


@define
class SchedChecker:
    """Checks a trace. ``messages``: how many it was given; ``hellos``: how many schedulers came up.

    ``zone``: how many seconds the trace's clock seems to be ahead of UTC (``flux module trace`` prints local time; a
    change to summer time within a trace is not seen). ``end``: the time of the last message.
    """

    last_rank: LastRank = LastRank.KEEP
    messages: int = 0
    hellos: int = 0
    zone: float = 0.0
    end: float = 0.0
    _zone_known: bool = False
    _jobs: dict[int, SchedJob] = field(factory=dict)  # that have resources, or may have
    _ended: dict[int, SchedJob] = field(factory=dict)
    _past: set[int] = field(factory=set)  # of those, the ids of the ones that are not kept any more
    _pending: dict[int, float | None] = field(factory=dict)  # requests, each with the time of its submit
    _taken: CoreBooks = field(factory=CoreBooks)  # by any job
    _doubled: set[int] = field(factory=set)  # jobs of which another has a part
    _hello: _Hello | None = None
    _all_known: bool = False  # a hello has named all jobs that have resources

    def step(self, message: SchedMessage) -> Iterator[SchedJob]:
        """Go on with one message. Yields jobs that ended some time ago: all about them is said."""
        self.messages += 1
        line, self.end, body = message
        time = self.end
        match body:
            case FreeRequest():
                yield from self._free(line, time, body)
            case AllocRequest():
                self._pending[body.job] = body.t_submit
            case AllocGrant():
                self._grant(line, time, body)
            case AllocEnd():
                self._pending.pop(body.job, None)
            case HelloRequest():
                self._hello = _Hello(line, body.partial_ok, whole=True)
                self._taken = CoreBooks()
            case HelloJob():
                self._hello_job(line, time, body)
            case HelloEnd():
                self._hello_end(line, time, body)
            case _:
                if job := self._jobs.get(body.job):
                    job.dropped = True
                    self._doubled.discard(body.job)
                    self._take_back(job.left)
                    yield from self._end_job(job)

    def finish(self) -> Iterator[SchedJob]:
        """The trace is over: the jobs that are left."""
        yield from self._ended.values()
        for job in self._jobs.values():
            job.finish(self.last_rank)
            yield job

    def _grant(self, line: int, time: float, body: AllocGrant) -> None:
        self._find_zone(time, body.starttime)
        cores = body.cores
        job = self._jobs.get(body.job)
        before = job or self._ended.pop(body.job, None)
        if job is None:  # what ended is over, but for what was found
            findings = [] if before is None else before.findings
            job = self._jobs[body.job] = SchedJob(body.job, line, time, findings=findings)
        if before is not None or body.job in self._past:
            ranks = NO_RANKS if cores is None else cores.ranks
            message = "the job is allocated, and was before"
            job.add(line, time, "sched.alloc", SchedCode.AllocatedTwice, ranks, message)
            job.missed, job.away = False, NO_RANKS
        job.granted = True
        job.t_submit = self._pending.pop(body.job, None) or job.t_submit
        job.starttime = body.starttime
        job.resources = body.resources
        if cores is not None:
            job.allocated = cores if job.allocated is None else job.allocated | cores
            job.left |= cores
            self._take(job, line, time, "sched.alloc")

    def _find_zone(self, time: float, starttime: float | None) -> None:
        """R begins when it is granted: what is between the two times, in quarters of an hour, is the time zone."""
        if not self._zone_known and starttime is not None:
            zone = round((time - starttime) / _QUARTER) * _QUARTER
            if abs(time - starttime - zone) < 60 and abs(zone) <= 56 * _QUARTER:
                self.zone, self._zone_known = zone, True

    def _take(self, job: SchedJob, line: int, time: float, event: str) -> None:
        """The scheduler takes what the job has left for allocated."""
        if common := self._taken.common(job.left):
            for other in self._jobs.values():
                both = other.left & common
                if both and other is not job and not other.missed and {job.job, other.job} - self._doubled:
                    message = f"{_cut(both)} is also job {other.job}'s (line {other.line})"
                    job.add(line, time, event, SchedCode.DoubleBooked, both.ranks, message)
                    self._doubled |= {job.job, other.job}
        self._taken.add(job.left)

    def _take_back(self, cores: CoreSet) -> None:
        self._taken.remove(cores)
        for number in self._doubled:
            self._taken.add(self._jobs[number].left)

    def _free(self, line: int, time: float, body: FreeRequest) -> Iterator[SchedJob]:
        job = self._jobs.get(body.job)
        if job is None:
            ended = self._ended.get(body.job)
            if ended is not None or body.job in self._past:
                job = ended or self._new_ended(line, time, body.job)
                where = f", with its final free at line {job.final}" if job.final else ""
                message = f"{_cut(body.cores)} freed, but the scheduler has forgotten the job{where}"
                job.add(line, time, "sched.free", SchedCode.FreedAfterFinal, body.cores.ranks, message)
                return
            job = self._jobs[body.job] = SchedJob(body.job, line, time)
            if self._all_known or body.job in self._pending:
                message = f"{_cut(body.cores)} freed, but the job has nothing allocated"
                job.add(line, time, "sched.free", SchedCode.FreedNotAllocated, body.cores.ranks, message)
        back = body.cores & job.left
        job.free(line, time, body)
        self._take_back(back)
        if body.final:
            yield from self._end_job(job)

    def _new_ended(self, line: int, time: float, number: int) -> SchedJob:
        job = self._ended[number] = SchedJob(number, line, time)
        return job

    def _end_job(self, job: SchedJob) -> Iterator[SchedJob]:
        self._ended[job.job] = self._jobs.pop(job.job)
        self._doubled.discard(job.job)
        if len(self._ended) > _WINDOW:
            oldest = self._ended.pop(next(iter(self._ended)))
            self._past.add(oldest.job)
            yield oldest

    def _hello_job(self, line: int, time: float, body: HelloJob) -> None:
        event = "job-manager.sched-hello"
        hello = self._hello = self._hello or _Hello(line)
        job = self._jobs.get(body.job)
        free = body.free or NO_RANKS
        if job is None:
            ended = self._ended.pop(body.job, None)
            job = self._jobs[body.job] = ended or SchedJob(body.job, line, time)
            if job.final is not None or self._all_known or body.job in self._past or body.job in self._pending:
                why = f": its final free is at line {job.final}" if job.final else ""
                message = f"the hello says that the job has resources, but it has none{why}"
                job.add(line, time, event, SchedCode.HelloNotAllocated, job.freed_ranks, message)
            job.final, job.dropped = None, False
        if body.job in hello.jobs:
            message = "a second response for the job in one hello: the one may undo the other"
            job.add(line, time, event, SchedCode.HelloTwice, free, message)
        if free and not hello.partial_ok:
            message = f"the hello says that {_ranks(free)} is free, to a scheduler that has not said partial-ok"
            job.add(line, time, event, SchedCode.HelloWithoutPartialOk, free, message)
        hello.jobs.add(body.job)
        job.t_submit = job.t_submit or body.t_submit
        job.hello(line, time, free)
        self._take(job, line, time, event)

    def _hello_end(self, line: int, time: float, body: HelloEnd) -> None:
        hello, self._hello = self._hello or _Hello(line), None
        if not body.complete:
            return
        self.hellos += 1
        if hello.whole:
            for number, job in self._jobs.items():
                if number not in hello.jobs:
                    job.miss(line, time)
                    self._doubled.discard(number)
            self._all_known = True


# -- logs beside the trace --


@define
class LogsBeside:
    """Follows logs beside a trace that was read: ``jobs``, by their ids, all of them.

    A journal names its jobs. The log of one job does not: its job is the one that was submitted at the same time, or
    else the one whose R begins at the same time, and that has the same ranks.
    """

    checker: SchedChecker
    jobs: dict[int, SchedJob]
    _by_time: dict[str, list[SchedJob]] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        for job in self.jobs.values():
            for time in (job.t_submit, job.starttime):
                if time is not None:
                    self._by_time.setdefault(_key(time), []).append(job)

    def begin(self, name: str) -> LogsOfFile:
        """Follow the logs of one more file."""
        return LogsOfFile(name, self)

    def find(self, log: JobLog) -> list[SchedJob]:
        """The jobs that a log without an id may be of."""
        start = None
        if log.resources is not None:
            with suppress(ValueError):  # an R that says something else than a time there
                start = log.resources.starttime()
        ranks = log.state.allocation
        for time in (log.began, start):
            alike = self._by_time.get(_key(time), []) if time is not None else []
            found = [job for job in alike if job.allocated is None or job.allocated.ranks == ranks or not ranks]
            if found:
                return found
        return []


@define
class LogsOfFile:
    """Follows the log or the journal that is in one file."""

    name: str
    beside: LogsBeside
    _strangers: int = 0  # allocated jobs that the trace does not have
    _logs: dict[int | None, JobLog] = field(factory=dict)

    def step(self, entry: Entry) -> None:
        """Go on with one event."""
        if entry.job is None or entry.job in self.beside.jobs:
            if entry.job not in self._logs:
                self._logs[entry.job] = JobLog(self.name)
            self._logs[entry.job].step(entry)
        elif isinstance(entry.event, Alloc) and not entry.event.bypass:
            self._strangers += 1

    def finish(self) -> Iterator[str]:
        """Compare each with its job. Yields what is to be said about those that could not be compared."""
        checker = self.beside.checker
        cut = 0
        for number, log in self._logs.items():
            jobs = self.beside.find(log) if number is None else [self.beside.jobs[number]]
            if len(jobs) == 1 and log.whole:
                if jobs[0].log is None:  # else this is a second copy
                    jobs[0].compare(log, checker.zone, checker.end)
            elif jobs and not log.whole:
                cut += 1
            elif log.state.allocation and not log.bypass:
                found = f"{len(jobs)} jobs" if jobs else "no job"
                by = "the time of its submit or the starttime of its R"
                yield f"{self.name}: {found} of the trace found for it, by {by}: not compared with the trace"
        if cut:
            yield f"{self.name}: {cut} of its jobs began before it: not compared with the trace"
        if self._strangers:
            yield f"{self.name}: {self._strangers} of its jobs are not in the trace: not compared with it"


def _key(time: float) -> str:
    return f"{time:.6f}"  # what the text of `flux job eventlog` has of it


def _ranks(ranks: IdSet) -> str:
    return f"rank{'' if len(ranks) == 1 else 's'} {_cut(ranks)}"


def _cut(value: IdSet | CoreSet) -> str:
    """As text, cut where it is long."""
    text = str(value)
    return text if len(text) <= 64 else f"{text[:60]}..."
