"""A whole instance: jobs, their housekeeping, and the scheduler that they share. No I/O, no clock.

How it works. A rank goes round: the scheduler grants it to a job (``alloc``), the job hands it over
(``partial-free``, ``free``), housekeeping runs its script on it, and it goes back to the scheduler in a fragment. The
instance is the three machines together, :mod:`.job`, :mod:`.housekeeping` and :mod:`.scheduler`, and what one
tells the other. An *input* is what happens to it from outside: an event of a job, the end of a housekeeping script, a
timer, a scheduler that is loaded anew, a restart. What the shell around it then has to do, it says with *outputs*.
Each input is one step, with the fragment that it lets go and the scheduler's taking it.

*Reload*: a new scheduler, and the job manager lives on. It gets one response a job, also when the job is both
active and in housekeeping; of its ranks those are free that housekeeping has really given back, and no more.

*Restart*: job manager and scheduler are new. Each job comes back by replay of its log; housekeeping's memory is gone,
so all that was handed over is free, and the rest is allocated. A job whose ``free`` is in its log has nothing any more.

Early release (``partial-free``, and ``release_after``) leaves jobs half freed. A scheduler without ``partial_ok``
cannot be told of that by hello, so with one it is off: a job's ranks go back all at once.

Not for every R: ``last_rank=with-last`` gives the off-node part of R back while an epilog may still use it, and
``last_rank=defer`` with Fluxion never gives it back. With an off-node part, keep to ``keep`` (see
:mod:`.instance_invariants`, ``OffNodeHeld`` and ``OffNodeFreed``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any, Final

from attrs import Factory, evolve, field, frozen
from attrs.validators import ge, optional

from . import events as ev
from . import housekeeping as hk
from . import job as jobs
from . import scheduler as sched
from .housekeeping import Housekeeping, Timer
from .idset import NO_RANKS, IdSet, in_words
from .instance_error import InstanceCode, InstanceError
from .job import Code, Job, LastRank, ProtocolViolation
from .scheduler import HelloResponse, Scheduler

__all__ = [
    "Completed",
    "Hello",
    "Input",
    "Instance",
    "JobEvent",
    "Member",
    "Output",
    "Restart",
    "RunHousekeeping",
    "SchedFree",
    "SchedulerReload",
    "Settings",
    "StartTimer",
    "TimerExpired",
    "rebuild",
]

# -- inputs --------------------------------------------------------------------------------------------------------


@frozen
class JobEvent:
    """An event of a job, as it is applied."""

    job: int
    event: ev.Event


@frozen
class Completed:
    """The job's housekeeping script has ended on ``ranks``, badly on ``failed`` of them."""

    job: int
    ranks: IdSet
    failed: IdSet = NO_RANKS


@frozen
class TimerExpired:
    """The job's release timer has expired."""

    job: int


@frozen
class SchedulerReload:
    """The scheduler was loaded anew, and says hello."""


@frozen
class Restart:
    """Job manager and scheduler were started anew."""


Input = JobEvent | Completed | TimerExpired | SchedulerReload | Restart

# -- outputs -------------------------------------------------------------------------------------------------------


@frozen
class RunHousekeeping:
    """Run the job's housekeeping script on ``ranks``, and say :class:`Completed`."""

    job: int
    ranks: IdSet


@frozen
class StartTimer:
    """Start the job's release timer, and say :class:`TimerExpired` after so many ``seconds``.

    A timer that still runs when the final fragment is sent is to be stopped, and all of them at a restart.
    """

    job: int
    seconds: float


@frozen
class SchedFree:
    """Tell the scheduler that the job gives ``ranks`` back; they are its last if ``final``."""

    job: int
    ranks: IdSet
    final: bool


@frozen
class Hello:
    """Answer the scheduler's hello."""

    responses: tuple[HelloResponse, ...]


Output = RunHousekeeping | StartTimer | SchedFree | Hello

# -- the state -----------------------------------------------------------------------------------------------------


@frozen
class Settings:
    """What is fixed for the life of an instance.

    ``last_rank``: see :class:`LastRank`. ``release_after``: see :mod:`.housekeeping`. ``partial_ok``, ``fluxion``,
    ``has_off_node``: what the scheduler is, see :class:`Scheduler`.
    """

    last_rank: LastRank = LastRank.KEEP
    release_after: float | None = field(default=None, validator=optional(ge(0)))
    partial_ok: bool = True
    fluxion: bool = False
    has_off_node: frozenset[int] = frozenset()


@frozen(cache_hash=True)
class Member:
    """One job of the instance. ``bypass``: it was allocated without the scheduler, and has no housekeeping either."""

    job: Job
    housekeeping: Housekeeping = field(factory=Housekeeping)
    bypass: bool = False

    @property
    def books(self) -> IdSet:
        """What the job counts for in the job manager's books: what it holds and what is in housekeeping, once."""
        return NO_RANKS if self.bypass else self.job.held | self.housekeeping.running | self.housekeeping.done


def _new_scheduler(settings: Settings) -> Scheduler:
    return Scheduler(settings.partial_ok, settings.fluxion, settings.has_off_node)


@frozen
class Instance:
    """The state of an instance: a value. ``Instance(settings)`` is one without jobs.

    ``members``: the jobs by their id; ``scheduler``: what the scheduler believes.
    """

    settings: Settings = Settings()
    members: Mapping[int, Member] = field(factory=dict, eq=sched.items)
    scheduler: Scheduler = field(default=Factory(lambda self: _new_scheduler(self.settings), takes_self=True))

    def member(self, job: int) -> Member:
        """The job of this id; one of which nothing has been said yet, where there is none."""
        return self.members.get(job) or Member(Job(self.settings.last_rank))

    def guard(self, input_: Input) -> ProtocolViolation | InstanceError | None:
        """May ``input_`` happen now? ``None`` if so, else the error that it would be."""
        return _RULES[type(input_)][0](self, input_)

    def apply(self, input_: Input) -> tuple[Instance, tuple[Output, ...]]:
        """The instance after ``input_``, and what is to be done for it, in order.

        Raises :class:`ProtocolViolation` or :class:`InstanceError` if it may not happen now.
        """
        may, do = _RULES[type(input_)]
        if refused := may(self, input_):
            raise refused
        return do(self, input_)

    def decide(self, queued: Mapping[int, Iterable[ev.Event]] | None = None) -> tuple[JobEvent, ...]:
        """The events that the job manager posts next, at most one a job.

        ``queued``: by job, the events that plugins have posted and that are not applied yet (see :func:`.job.decide`).
        """
        queued = queued or {}
        decided = ((id_, jobs.decide(member.job, queued.get(id_, ()))) for id_, member in self.members.items())
        return tuple(JobEvent(id_, event) for id_, event in decided if event and self._may_post(event))

    def _may_post(self, event: ev.Event) -> bool:
        return not isinstance(event, ev.PartialFree) or early_release(self.settings)


# -- what the rules speak of ---------------------------------------------------------------------------------------


def early_release(settings: Settings) -> bool:
    """Whether ranks may go back before the rest of their job: only if the scheduler can be told by hello."""
    return settings.partial_ok


def release_after(settings: Settings) -> float | None:
    """How long ranks that are done wait; without early release, for all others."""
    return settings.release_after if early_release(settings) else None


def is_over(job: Job) -> bool:
    """No further hand-over will come. With ``with-last`` that is so from the last rank on, before ``free``."""
    gone = bool(job.allocation) and not job.held
    return job.closed or (job.last_rank is LastRank.WITH_LAST and gone)


def free_in_hello(member: Member) -> IdSet:
    """Which ranks of the job a hello calls free: those that housekeeping has given back."""
    return member.housekeeping.freed


def hello(members: Mapping[int, Member]) -> tuple[HelloResponse, ...]:
    """One response for each job that the scheduler gave an allocation, and has not got the last of back."""
    return tuple(
        HelloResponse(id_, member.job.allocation, free_in_hello(member))
        for id_, member in members.items()
        if member.job.allocation and not member.bypass and not member.housekeeping.final
    )


def recovered(member: Member) -> Housekeeping:
    """What is known of a job's housekeeping after a restart: all that was handed over is free."""
    if member.bypass:
        return Housekeeping()
    over = is_over(member.job)
    return Housekeeping(freed=member.job.released, closing=over, final=over)


def replay(log: Iterable[ev.Event], settings: Settings) -> Member:
    """The job that its log tells of. Raises :class:`ProtocolViolation` if it breaks a rule."""
    log = tuple(log)
    job = reduce(jobs.apply, log, Job(settings.last_rank))
    return Member(job, bypass=any(_is_bypass(event) for event in log))


def _is_bypass(event: ev.Event) -> bool:
    return isinstance(event, ev.Alloc) and bool(event.bypass)


_Refused = ProtocolViolation | InstanceError | None
_Done = tuple[Instance, tuple[Output, ...]]

# -- the rules, an input at a time, its guard beside its effect ----------------------------------------------------


# JobEvent: what the job's own rules say; and the scheduler grants what is free, early release is on where ranks go
# early, and no rank is lost where housekeeping still runs.


def _event_guard(instance: Instance, input_: JobEvent) -> _Refused:
    id_, event, member = input_.job, input_.event, instance.member(input_.job)
    if found := jobs.guard(member.job, event):
        return found
    if isinstance(event, ev.Alloc) and not event.bypass:
        return sched.grant_guard(instance.scheduler, id_, event.ranks)
    if isinstance(event, ev.PartialFree) and not early_release(instance.settings):
        return _cannot_be_told(id_, event.ranks)
    if (ranks := member.housekeeping.running) and _takes_away(member.job, event):
        why = f"the scheduler restarted and took {in_words(ranks)} away, still in housekeeping"
        return ProtocolViolation(Code.ResourcesLost, event, why, ranks=ranks)
    return None


def _event_effect(instance: Instance, input_: JobEvent) -> _Done:
    id_, event, member = input_.job, input_.event, instance.member(input_.job)
    before, after = member.job, jobs.effect(member.job, event)
    member = evolve(member, job=after, bypass=member.bypass or _is_bypass(event))
    if member.bypass:
        return _with(instance, id_, member), ()
    if isinstance(event, ev.Alloc):
        instance = evolve(instance, scheduler=sched.grant(instance.scheduler, id_, after.allocation))
    if _takes_away(before, event):
        instance = evolve(instance, scheduler=sched.drop(instance.scheduler, id_))
        return _with(instance, id_, evolve(member, housekeeping=hk.abandon(member.housekeeping))), ()
    ranks = after.released - before.released
    instance, given = _flush(instance, id_, member, hk.hand_over(member.housekeeping, ranks, is_over(after)))
    return instance, ((RunHousekeeping(id_, ranks), *given) if ranks else given)


def _takes_away(job: Job, event: ev.Event) -> bool:
    """A fatal ``scheduler-restart``: the scheduler drops the job."""
    return isinstance(event, ev.JobException) and not job.closed and jobs.effect(job, event).closed


def _cannot_be_told(id_: int, ranks: IdSet) -> InstanceError:
    why = (
        f"job {id_} gives {in_words(ranks)} back early, but the scheduler's hello has no partial-ok: it cannot be told"
    )
    return InstanceError(InstanceCode.NoPartialOk, why, ranks)


# Completed: the job's housekeeping runs on the ranks.


def _completed_guard(instance: Instance, input_: Completed) -> _Refused:
    return hk.complete_guard(instance.member(input_.job).housekeeping, input_.ranks, input_.failed)


def _completed_effect(instance: Instance, input_: Completed) -> _Done:
    id_, member, seconds = input_.job, instance.member(input_.job), release_after(instance.settings)
    before = member.housekeeping
    instance, given = _flush(instance, id_, member, hk.complete(before, input_.ranks, input_.failed, seconds))
    if seconds and before.timer is Timer.OFF and instance.member(id_).housekeeping.timer is Timer.ON:
        return instance, (*given, StartTimer(id_, seconds))
    return instance, given


# TimerExpired: the job's timer is on.


def _expired_guard(instance: Instance, input_: TimerExpired) -> _Refused:
    return hk.expire_guard(instance.member(input_.job).housekeeping)


def _expired_effect(instance: Instance, input_: TimerExpired) -> _Done:
    member = instance.member(input_.job)
    return _flush(instance, input_.job, member, hk.expire(member.housekeeping))


# SchedulerReload: always. The scheduler knows what hello says, and nothing else.


def _always(instance: Instance, input_: Input) -> _Refused:
    return None


def _reload_effect(instance: Instance, input_: SchedulerReload) -> _Done:
    responses = hello(instance.members)
    return evolve(instance, scheduler=sched.hello(instance.scheduler, responses)), (Hello(responses),)


# Restart: always. Of housekeeping is known what the jobs' logs tell; then as a reload.


def _restart_effect(instance: Instance, input_: Restart) -> _Done:
    members = {id_: evolve(each, housekeeping=recovered(each)) for id_, each in instance.members.items()}
    return _reload_effect(evolve(instance, members=members), SchedulerReload())


# -- what several rules share --------------------------------------------------------------------------------------


def _with(instance: Instance, id_: int, member: Member) -> Instance:
    return evolve(instance, members={**instance.members, id_: member})


def _flush(instance: Instance, id_: int, member: Member, housekeeping: Housekeeping) -> _Done:
    """The instance with the job's new housekeeping, when the scheduler has got what is now due."""
    ranks, final = hk.due(housekeeping, release_after(instance.settings))
    if not ranks and not final:
        return _with(instance, id_, evolve(member, housekeeping=housekeeping)), ()
    if refused := sched.free_guard(instance.scheduler, id_, ranks, final):
        raise refused
    instance = _with(instance, id_, evolve(member, housekeeping=hk.sent(housekeeping, ranks, final)))
    scheduler = sched.free(instance.scheduler, id_, ranks, final)
    return evolve(instance, scheduler=scheduler), (SchedFree(id_, ranks, final),)


# -- the machine ---------------------------------------------------------------------------------------------------

_RULES: Final[dict[type[Input], tuple[Callable[[Instance, Any], _Refused], Callable[[Instance, Any], _Done]]]] = {
    JobEvent: (_event_guard, _event_effect),
    Completed: (_completed_guard, _completed_effect),
    TimerExpired: (_expired_guard, _expired_effect),
    SchedulerReload: (_always, _reload_effect),
    Restart: (_always, _restart_effect),
}


def rebuild(logs: Mapping[int, Iterable[ev.Event]], settings: Settings) -> Instance:
    """The instance after a restart, from the logs of its jobs alone: what :class:`Restart` leads the live one to.

    Raises :class:`ProtocolViolation` if a log breaks a rule, and :class:`InstanceError` if a job is half freed and the
    scheduler cannot be told of it.
    """
    instance = Instance(settings, {id_: replay(log, settings) for id_, log in logs.items()})
    instance, _ = instance.apply(Restart())
    for response in hello(instance.members):
        if response.free and not early_release(settings):
            raise _cannot_be_told(response.job, response.free)
    return instance
