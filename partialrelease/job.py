"""The state of one job, and everything that decides what an event does to it. No I/O, no clock.

How it works. A job *holds* the ranks of its allocation until it hands them over. *Holders* reference ranks: the exec
system, prolog actions, and epilog actions, which go by their description. A reference only ever shrinks. Ranks may be
handed over when the *release gate* is open (the job is in CLEANUP, and the exec system is not between start request
and ``finish``) and no holder references them: these are *releasable*. The last hand-over is ``free``, when no holder
is left; ``clean`` then ends the job.

Two pure functions make the machine, as in Flux's job manager. :func:`apply` says what an event means: it is the
event's *guard* (may this happen now?) followed by its *effect* (what does it do?). :func:`decide` says which event the
job manager posts next. State is a function of the events applied and of nothing else.

The rules stand below in the order of the specification, an event at a time, its guard beside its effect. The effect is
total: it also says what is then the case when an event happened that should not have, because who checks a log must go
on. Ranks that were handed over are gone, whatever the rule said; the finish of an unknown holder ends nothing; a
duplicate holder is a second reference and takes a second finish; ranks that the job does not hold are left out.

*Start request.* It is not logged but derived: in RUN, allocated, with no prolog active, the exec system has been asked
to start the job, and has the ranks. A ``prolog-start`` in RUN withdraws the request. After a fatal exception the exec
system owes a final ``release`` if it had been asked, and nothing if a prolog was active. It becomes a holder with
``start`` (or with ``finish``, when the shells never started).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, Final

from attrs import frozen

from . import events as ev
from .idset import ALL_RANKS, NO_RANKS, IdSet, in_words

__all__ = [
    "Code",
    "Exec",
    "Holder",
    "HolderKind",
    "Job",
    "LastRank",
    "Phase",
    "ProtocolViolation",
    "apply",
    "decide",
    "effect",
    "guard",
    "settle",
]


class Phase(StrEnum):
    """The job states of RFC 21, and the one before the first event."""

    UNBORN = "-"
    NEW = "NEW"
    DEPEND = "DEPEND"
    PRIORITY = "PRIORITY"
    SCHED = "SCHED"
    RUN = "RUN"
    CLEANUP = "CLEANUP"
    INACTIVE = "INACTIVE"


class Exec(StrEnum):
    """How far the exec system is with the job."""

    IDLE = "idle"  # not asked to start it
    REQUESTED = "requested"  # asked; neither start nor finish seen
    RUNNING = "running"  # started
    FINISHED = "finished"  # the shells have exited; the final release is owed
    DONE = "done"  # final release seen


class LastRank(StrEnum):
    """What may happen to the last held rank while a holder is active. Fixed for the life of a job."""

    KEEP = "keep"  # it stays until `free`; the safe setting
    DEFER = "defer"  # it may go; the final free is then empty
    WITH_LAST = "with-last"  # it may go, and `final` goes with it


class HolderKind(StrEnum):
    EXEC = "exec"
    PROLOG = "prolog"
    EPILOG = "epilog"


class Code(StrEnum):
    """The violations. Where an event breaks several rules, the first in this order stands."""

    AfterInactive = "AfterInactive"
    MalformedContext = "MalformedContext"
    UnknownHolder = "UnknownHolder"
    DuplicateHolder = "DuplicateHolder"
    WrongPhase = "WrongPhase"
    ReleasedWhileReferenced = "ReleasedWhileReferenced"
    FreeWhileActive = "FreeWhileActive"
    GateClosed = "GateClosed"
    NotHeld = "NotHeld"
    CleanWhileHeld = "CleanWhileHeld"
    LastRankFreed = "LastRankFreed"
    ResourcesLost = "ResourcesLost"


# Short names for the rules.
UNBORN, NEW, DEPEND, PRIORITY, SCHED, RUN, CLEANUP, INACTIVE = Phase
IDLE, REQUESTED, RUNNING, FINISHED, DONE = Exec
EXEC, PROLOG, EPILOG = HolderKind


@frozen(slots=False)
class Holder:
    """Who references which ranks. The exec system has no description."""

    kind: HolderKind
    description: str
    ranks: IdSet

    def __str__(self) -> str:
        return "the exec system" if self.kind is EXEC else f"{self.kind} {self.description!r}"


@frozen(slots=False)
class Job:
    """One job. ``Job()`` is a job of which nothing has been said yet: ``submit`` must come first.

    ``allocation``: the ranks of R, ever. ``held``: those that the job still has. ``released``: those that it has handed
    over. (What is in neither was lost: a fatal ``scheduler-restart`` exception took it away.)
    ``closed``: the allocation is over, by ``free`` or by loss. ``last_rank``: see :class:`LastRank`.

    While nothing is allocated, an action that references "all" references ``ALL_RANKS``.
    """

    last_rank: LastRank = LastRank.KEEP
    phase: Phase = Phase.UNBORN
    exec: Exec = Exec.IDLE
    exec_ranks: IdSet = NO_RANKS  # what the exec system has, from the start request to its final release
    actions: tuple[Holder, ...] = ()  # active prologs and epilogs, in the order in which they started
    allocation: IdSet = NO_RANKS
    held: IdSet = NO_RANKS
    released: IdSet = NO_RANKS
    closed: bool = False

    @property
    def holders(self) -> tuple[Holder, ...]:
        """The active holders: the exec system from ``start`` on, then the actions in the order of their starts."""
        if self.exec is RUNNING or self.exec is FINISHED:
            return (Holder(EXEC, "", self.exec_ranks), *self.actions)
        return self.actions

    @property
    def referenced(self) -> IdSet:
        """The union of the active holders' references, within what is held."""
        return _union(self.holders) & self.held if self.held else NO_RANKS

    @property
    def gate_open(self) -> bool:
        """The release gate: in CLEANUP, and the exec system is not between start request and ``finish``."""
        return self.phase is CLEANUP and self.exec is not REQUESTED and self.exec is not RUNNING

    @property
    def releasable(self) -> IdSet:
        """What may be handed over now: gate open, held and not referenced."""
        return self.held - self.referenced if self.gate_open else NO_RANKS

    @property
    def lost(self) -> IdSet:
        """The ranks that were taken away rather than handed over."""
        return self.allocation - self.held - self.released

    def holding(self, ranks: IdSet) -> tuple[Holder, ...]:
        """The active holders that reference any of ``ranks``."""
        return tuple([holder for holder in self.holders if not holder.ranks.isdisjoint(ranks)])

    def find(self, kind: HolderKind, description: str) -> Holder | None:
        """The active action of this kind and description; the oldest, where a violation made them several."""
        for holder in self.actions:
            if holder.kind is kind and holder.description == description:
                return holder
        return None


class ProtocolViolation(Exception):  # noqa: N818  # it is called that everywhere
    """An event broke a rule. ``str()`` says it in a user's words.

    ``code``: which rule. ``event``: the event. ``ranks``: the ranks concerned. ``holders``: the holders concerned.
    """

    def __init__(
        self,
        code: Code,
        event: ev.Event,
        message: str,
        *,
        ranks: IdSet = NO_RANKS,
        holders: Iterable[Holder] = (),
    ) -> None:
        super().__init__(code, event, message)
        self.code: Final = code
        self.event: Final = event
        self.message: Final = message
        self.ranks: Final = ranks
        self.holders: Final = tuple(holders)

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


# -- the rules, in the order of the specification ------------------------------------------------------------------

Violation = ProtocolViolation  # short, for the rules
_Found = ProtocolViolation | None


_new = object.__new__
_set_fields = Job.__dict__["__dict__"].__set__


def evolved(job: Job, **changes: Any) -> Job:
    """``attrs.evolve``, five times as fast: a copy with changes, past ``__init__``."""
    new = _new(Job)
    _set_fields(new, job.__dict__ | changes)
    return new


def _unchanged(job: Job, event: ev.Event) -> Job:
    return job


def _malformed_guard(job: Job, event: ev.Malformed) -> _Found:
    return Violation(Code.MalformedContext, event, f"{event.problem} (RFC 21)")


def _malformed_effect(job: Job, event: ev.Malformed) -> Job:
    return job if event.meant is None else effect(job, event.meant)


# submit: first.


def _submit_guard(job: Job, event: ev.Submit) -> _Found:
    if job.phase is not UNBORN:
        return Violation(Code.WrongPhase, event, "a second submit: a job is submitted once, by its first event")
    return None


def _submit_effect(job: Job, event: ev.Submit) -> Job:
    return evolved(job, phase=NEW) if job.phase is UNBORN else job


# Before the allocation Flux ignores what does not fit the phase, and so do these: they are always legal.


def _validate_effect(job: Job, event: ev.Validate) -> Job:
    return evolved(job, phase=DEPEND) if job.phase is NEW else job


def _invalidate_effect(job: Job, event: ev.Invalidate) -> Job:
    return evolved(job, phase=INACTIVE) if job.phase is NEW else job


def _depend_effect(job: Job, event: ev.Depend) -> Job:
    return evolved(job, phase=PRIORITY) if job.phase is DEPEND else job


def _priority_effect(job: Job, event: ev.Priority) -> Job:
    return evolved(job, phase=SCHED) if job.phase is PRIORITY else job


def _reprioritize_effect(job: Job, event: ev.Urgency | ev.JobspecUpdate | ev.FluxRestart) -> Job:
    return evolved(job, phase=PRIORITY) if job.phase is SCHED else job


# alloc: not yet allocated. In CLEANUP (the grant crossed a cancel) the phase stays, and the ranks are held.


def _alloc_guard(job: Job, event: ev.Alloc) -> _Found:
    if not event.ranks:
        return Violation(Code.MalformedContext, event, "alloc: R has no ranks (RFC 20)")
    if job.allocation:
        return Violation(
            Code.WrongPhase, event, "a second alloc: the job has its allocation already", ranks=event.ranks
        )
    return None


def _alloc_effect(job: Job, event: ev.Alloc) -> Job:
    if job.allocation or not event.ranks:
        return job
    ranks = event.ranks
    phase = CLEANUP if job.phase is CLEANUP else RUN
    exec_ranks, actions = job.exec_ranks & ranks, _within(job.actions, ranks)
    job = evolved(job, phase=phase, allocation=ranks, held=ranks, exec_ranks=exec_ranks, actions=actions)
    return _request_start(job)


def _request_start(job: Job) -> Job:
    """Ask the exec system to start the job, if that is due."""
    if job.phase is not RUN or job.exec is not IDLE or not job.allocation or _prologs(job):
        return job
    return evolved(job, exec=REQUESTED, exec_ranks=job.held)


def _prologs(job: Job) -> tuple[Holder, ...]:
    return tuple(holder for holder in job.actions if holder.kind is PROLOG) if job.actions else ()


# prolog-start: not started yet. It references all ranks, also those of an allocation that may still come.


def _prolog_start_guard(job: Job, event: ev.PrologStart) -> _Found:
    if active := job.find(PROLOG, event.description):
        return _duplicate(event, active)
    if job.exec is not IDLE and job.exec is not REQUESTED:
        return Violation(Code.WrongPhase, event, f"prolog {event.description!r} starts after the job has started")
    return None


def _prolog_start_effect(job: Job, event: ev.PrologStart) -> Job:
    holder = Holder(PROLOG, event.description, _all_ranks(job))
    if job.phase is RUN and job.exec is REQUESTED:
        job = evolved(job, exec=IDLE, exec_ranks=NO_RANKS)
    return evolved(job, actions=(*job.actions, holder))


# prolog-finish: that prolog is active.


def _prolog_finish_guard(job: Job, event: ev.PrologFinish) -> _Found:
    return _must_be_active(job, event, PROLOG, event.description)


def _prolog_finish_effect(job: Job, event: ev.PrologFinish) -> Job:
    return _request_start(_end(job, PROLOG, event.description))


# start: the exec system has been asked (so: allocated, no prolog active, not started).


def _start_guard(job: Job, event: ev.Start) -> _Found:
    prologs = _prologs(job)
    if job.exec is REQUESTED and not prologs:
        return None
    if job.exec is not REQUESTED and job.exec is not IDLE:
        return Violation(Code.WrongPhase, event, "the job has started already")
    why = "a prolog is active" if prologs else "nothing is allocated" if not job.allocation else "nobody asked for it"
    return Violation(Code.WrongPhase, event, f"the job starts although {why}", holders=prologs)


def _start_effect(job: Job, event: ev.Start) -> Job:
    if job.exec is REQUESTED:
        return evolved(job, exec=RUNNING)
    if job.exec is IDLE:
        return evolved(job, exec=RUNNING, exec_ranks=_all_ranks(job))
    return job


# finish: started, or start requested. RUN -> CLEANUP.


def _finish_guard(job: Job, event: ev.Finish) -> _Found:
    too_early = job.exec is DONE and job.phase is RUN  # a final release came before, and was reported
    if job.exec is REQUESTED or job.exec is RUNNING or too_early:
        return None
    what = "was not started" if job.exec is IDLE else "has finished already"
    return Violation(Code.WrongPhase, event, f"the job finishes, but it {what}")


def _finish_effect(job: Job, event: ev.Finish) -> Job:
    phase = CLEANUP if job.phase is RUN else job.phase
    return evolved(job, phase=phase, exec=FINISHED if job.exec is REQUESTED or job.exec is RUNNING else job.exec)


# exception: severity 0 -> CLEANUP, others nothing. A fatal scheduler-restart also takes the allocation away.


def _loses(job: Job, event: ev.JobException) -> bool:
    return event.severity == 0 and event.type == "scheduler-restart" and bool(job.allocation) and not job.closed


def _exception_guard(job: Job, event: ev.JobException) -> _Found:
    if _loses(job, event) and (ranks := job.referenced):
        holders = job.holding(ranks)
        return Violation(
            Code.ResourcesLost,
            event,
            f"the scheduler restarted and took {in_words(ranks)} away, still in use by {_names(holders)}",
            ranks=ranks,
            holders=holders,
        )
    return None


def _exception_effect(job: Job, event: ev.JobException) -> Job:
    if event.severity != 0:
        return job
    if _loses(job, event):
        return _take(job, job.held, phase=CLEANUP, closed=True)
    return evolved(job, phase=CLEANUP)


# release without description: the exec system drops ranks that it has. final ends it, and comes after finish, or
# after a fatal exception when the job was never started.


def _exec_release_guard(job: Job, event: ev.Release) -> _Found:
    if job.exec is IDLE or job.exec is DONE:
        what = "has not been asked to start the job" if job.exec is IDLE else "made its final release before"
        return Violation(Code.WrongPhase, event, f"the exec system releases ranks, but it {what}", ranks=event.ranks)
    if event.final and (job.phase is not CLEANUP or job.exec is RUNNING):
        why = "the exec system's final release comes before the job's finish"
        return Violation(Code.WrongPhase, event, why, ranks=event.ranks, holders=job.holders[:1])
    return _must_hold(event, event.ranks, job.exec_ranks if job.allocation else NO_RANKS, "the exec system")


def _exec_release_effect(job: Job, event: ev.Release) -> Job:
    if job.exec is IDLE or job.exec is DONE:
        return job
    if event.final:
        return evolved(job, exec=DONE, exec_ranks=NO_RANKS)
    return evolved(job, exec_ranks=job.exec_ranks - event.ranks)


# release with description (extension): in CLEANUP, that epilog is active and has the ranks, and drops them.


def _release_guard(job: Job, event: ev.Release) -> _Found:
    if event.description is None:
        return _exec_release_guard(job, event)
    if event.final:
        return Violation(Code.MalformedContext, event, "'final' is true: only the exec system's release can be final")
    index = _giver(job, event)
    if index is None:
        return _unknown(job, event, EPILOG, event.description)
    holder = job.actions[index]
    if job.phase is not CLEANUP:
        return _outside_cleanup(event, f"epilog {event.description!r} releases ranks", job)
    return _must_hold(event, event.ranks, holder.ranks if job.allocation else NO_RANKS, holder)


def _release_effect(job: Job, event: ev.Release) -> Job:
    if event.description is None:
        return _exec_release_effect(job, event)
    index = _giver(job, event)
    if index is None:
        return job
    less = _drop(job.actions[index], event.ranks)
    return evolved(job, actions=(*job.actions[:index], less, *job.actions[index + 1 :]))


def _giver(job: Job, event: ev.Release) -> int | None:
    """Which action is the named epilog; where a violation made them several, the oldest that has the ranks."""
    oldest = None
    for index, holder in enumerate(job.actions):
        if holder.kind is EPILOG and holder.description == event.description:
            if event.ranks <= holder.ranks:
                return index
            oldest = index if oldest is None else oldest
    return oldest


# epilog-start: CLEANUP, description not active. It references what it says (extension), within what is held;
# all that is held now where it says nothing.


def _epilog_start_guard(job: Job, event: ev.EpilogStart) -> _Found:
    if active := job.find(EPILOG, event.description):
        return _duplicate(event, active)
    if job.phase is not CLEANUP:
        return _outside_cleanup(event, f"epilog {event.description!r} starts", job)
    if event.ranks is None:
        return None
    return _must_hold(event, event.ranks, job.held, "the job")


def _epilog_start_effect(job: Job, event: ev.EpilogStart) -> Job:
    ranks = _all_ranks(job) if event.ranks is None or event.ranks == ALL_RANKS else event.ranks & job.held
    holder = Holder(EPILOG, event.description, ranks)
    return evolved(job, actions=(*job.actions, holder))


# epilog-finish: that epilog is active. It drops everything.


def _epilog_finish_guard(job: Job, event: ev.EpilogFinish) -> _Found:
    return _must_be_active(job, event, EPILOG, event.description)


def _epilog_finish_effect(job: Job, event: ev.EpilogFinish) -> Job:
    return _end(job, EPILOG, event.description)


# partial-free (extension): ranks that are releasable, while some holder is active; with `keep`, not the last.


def _partial_free_guard(job: Job, event: ev.PartialFree) -> _Found:
    ranks = event.ranks
    if not ranks:
        return Violation(Code.MalformedContext, event, "partial-free: 'ranks' is empty")
    if not job.holders:
        return Violation(
            Code.WrongPhase,
            event,
            "a partial-free although no holder is active: this is free's part",
            ranks=ranks,
        )
    if found := _must_be_releasable(job, event, ranks):
        return found
    if not ranks <= job.held:
        return _not_held(event, ranks - job.held, "the job")
    if job.last_rank is LastRank.KEEP and ranks == job.held:
        return Violation(
            Code.LastRankFreed,
            event,
            f"a partial-free of {in_words(ranks)} leaves the job no rank while {_names(job.holders)} "
            "is active; with last_rank=keep one stays until free",
            ranks=ranks,
            holders=job.holders,
        )
    return None


def _partial_free_effect(job: Job, event: ev.PartialFree) -> Job:
    ranks = event.ranks & job.held
    return _take(job, ranks, released=job.released | ranks)


# free: gate open, allocated, no holder active, not freed. Everything still held is handed over; it is final.


def _free_guard(job: Job, event: ev.Free) -> _Found:
    if job.closed or not job.allocation:
        what = "its allocation is over" if job.allocation else "nothing is allocated"
        return Violation(Code.WrongPhase, event, f"the job is freed, but {what}")
    return _must_be_releasable(job, event, job.held)


def _free_effect(job: Job, event: ev.Free) -> Job:
    if not job.allocation:
        return job
    return _take(job, job.held, released=job.released | job.held, closed=True)


# clean: CLEANUP, no holder active, exec system not pending, freed if allocated. Nothing may follow.


def _clean_guard(job: Job, event: ev.Clean) -> _Found:
    if job.phase is not CLEANUP:
        return _outside_cleanup(event, "the job goes clean", job)
    if not job.holders and job.exec is not REQUESTED and (job.closed or not job.allocation):
        return None
    why = [f"{holder} is active" for holder in job.holders]
    if job.exec is REQUESTED:
        why.append("the exec system owes its final release")
    if job.held:
        why.append(f"{in_words(job.held)} {'is' if len(job.held) == 1 else 'are'} still held")
    elif job.allocation and not job.closed:
        why.append("it was not freed")
    return Violation(
        Code.CleanWhileHeld,
        event,
        f"the job goes clean although {' and '.join(why)}",
        ranks=job.held,
        holders=job.holders,
    )


def _clean_effect(job: Job, event: ev.Clean) -> Job:
    return evolved(job, phase=INACTIVE)


# -- what several rules share --------------------------------------------------------------------------------------


def _must_be_active(job: Job, event: ev.Event, kind: HolderKind, description: str) -> _Found:
    return None if job.find(kind, description) else _unknown(job, event, kind, description)


def _unknown(job: Job, event: ev.Event, kind: HolderKind, description: str) -> Violation:
    others = tuple(holder for holder in job.actions if holder.kind is kind)
    known = f"active: {_names(others)}" if others else f"no {kind} is active"
    what = "releases ranks" if isinstance(event, ev.Release) else "finishes"
    return Violation(
        Code.UnknownHolder,
        event,
        f"{kind} {description!r} {what} but is not active ({known}): it ends no hold",
        holders=others,
    )


def _duplicate(event: ev.Event, active: Holder) -> Violation:
    return Violation(
        Code.DuplicateHolder,
        event,
        f"{active} starts while another of that description is active: their ends cannot be told apart",
        holders=(active,),
    )


def _outside_cleanup(event: ev.Event, what: str, job: Job) -> Violation:
    return Violation(Code.WrongPhase, event, f"{what} in {job.phase}, not in CLEANUP")


def _must_hold(event: ev.Event, ranks: IdSet, has: IdSet, who: Holder | str) -> _Found:
    """``ranks`` are some of those that it has, or "all" of them."""
    if ranks is ALL_RANKS or ranks <= has or ranks == ALL_RANKS:  # the first is only quicker than the last
        return None
    return _not_held(event, ranks - has, who)


def _not_held(event: ev.Event, missing: IdSet, who: Holder | str) -> Violation:
    holders = (who,) if isinstance(who, Holder) else ()
    return Violation(Code.NotHeld, event, f"{who} does not hold {in_words(missing)}", ranks=missing, holders=holders)


def _must_be_releasable(job: Job, event: ev.Event, ranks: IdSet) -> _Found:
    """The mission: nothing that is referenced, and nothing while the gate is closed."""
    if holders := job.holders:
        users = tuple([holder for holder in holders if not holder.ranks.isdisjoint(ranks)])
        if users and (in_use := _union(users) & ranks & job.held):
            return Violation(
                Code.ReleasedWhileReferenced,
                event,
                f"{in_words(in_use)} handed over while still referenced by {_names(users)}",
                ranks=in_use,
                holders=users,
            )
        if isinstance(event, ev.Free):
            return Violation(
                Code.FreeWhileActive,
                event,
                f"the job is freed while {_names(holders)} is active, although on no rank",
                ranks=ranks,
                holders=holders,
            )
    if not job.gate_open:
        why = f"in {job.phase}" if job.phase is not CLEANUP else "before the exec system is done"
        message = f"{in_words(ranks)} handed over {why}: the release gate is closed"
        return Violation(Code.GateClosed, event, message, ranks=ranks)
    return None


def _all_ranks(job: Job) -> IdSet:
    """What "all" references: every rank held now; where nothing is allocated yet, all of what may still come."""
    return job.held if job.allocation else ALL_RANKS


def _union(holders: tuple[Holder, ...]) -> IdSet:
    ranks = NO_RANKS
    for holder in holders:
        ranks |= holder.ranks
    return ranks


def _within(holders: tuple[Holder, ...], ranks: IdSet) -> tuple[Holder, ...]:
    return tuple([_keep(holder, ranks) for holder in holders]) if holders else holders


def _keep(holder: Holder, ranks: IdSet) -> Holder:
    return holder if holder.ranks <= ranks else Holder(holder.kind, holder.description, holder.ranks & ranks)


def _drop(holder: Holder, ranks: IdSet) -> Holder:
    return Holder(holder.kind, holder.description, holder.ranks - ranks)


def _end(job: Job, kind: HolderKind, description: str) -> Job:
    """End the holder; the oldest, where a violation made them several; none, where it is not active."""
    for index, holder in enumerate(job.actions):
        if holder.kind is kind and holder.description == description:
            return evolved(job, actions=job.actions[:index] + job.actions[index + 1 :])
    return job


def _take(job: Job, ranks: IdSet, **changes: Any) -> Job:
    """The job without ``ranks``, and with changes. References go with them, which matters only after a violation."""
    if not job.allocation:
        return job
    held = job.held - ranks
    actions = _within(job.actions, held)
    return evolved(job, held=held, exec_ranks=job.exec_ranks & held, actions=actions, **changes)


def _names(holders: tuple[Holder, ...]) -> str:
    return " and ".join(map(str, holders))


# -- the machine ---------------------------------------------------------------------------------------------------


_Guard = Callable[[Job, Any], _Found]
_Effect = Callable[[Job, Any], Job]

_RULES: Final[dict[type[ev.Event], tuple[_Guard | None, _Effect]]] = {
    ev.Submit: (_submit_guard, _submit_effect),
    ev.Validate: (None, _validate_effect),
    ev.Invalidate: (None, _invalidate_effect),
    ev.DependencyAdd: (None, _unchanged),
    ev.DependencyRemove: (None, _unchanged),
    ev.SetFlags: (None, _unchanged),
    ev.Memo: (None, _unchanged),
    ev.ResourceUpdate: (None, _unchanged),
    ev.Depend: (None, _depend_effect),
    ev.Priority: (None, _priority_effect),
    ev.Urgency: (None, _reprioritize_effect),
    ev.JobspecUpdate: (None, _reprioritize_effect),
    ev.FluxRestart: (None, _reprioritize_effect),
    ev.Alloc: (_alloc_guard, _alloc_effect),
    ev.PrologStart: (_prolog_start_guard, _prolog_start_effect),
    ev.PrologFinish: (_prolog_finish_guard, _prolog_finish_effect),
    ev.Start: (_start_guard, _start_effect),
    ev.Finish: (_finish_guard, _finish_effect),
    ev.JobException: (_exception_guard, _exception_effect),
    ev.Release: (_release_guard, _release_effect),
    ev.EpilogStart: (_epilog_start_guard, _epilog_start_effect),
    ev.EpilogFinish: (_epilog_finish_guard, _epilog_finish_effect),
    ev.PartialFree: (_partial_free_guard, _partial_free_effect),
    ev.Free: (_free_guard, _free_effect),
    ev.Clean: (_clean_guard, _clean_effect),
    ev.Unknown: (None, _unchanged),
    ev.Malformed: (_malformed_guard, _malformed_effect),
}

CHANGE_NOTHING: Final = frozenset(kind for kind, rule in _RULES.items() if rule == (None, _unchanged))
"""The events that are legal in any active phase and have no effect."""

_BEFORE_WRONG_PHASE: Final = frozenset({Code.MalformedContext, Code.UnknownHolder, Code.DuplicateHolder})


def guard(job: Job, event: ev.Event) -> ProtocolViolation | None:
    """May ``event`` happen now? ``None`` if so, else the violation that it would be."""
    if job.phase is INACTIVE:
        return Violation(Code.AfterInactive, event, f"{event.name} after the job became INACTIVE: nothing may follow")
    may = _RULES[type(event)][0]
    found = may(job, event) if may else None
    if job.phase is not UNBORN or type(event) is ev.Submit or (found and found.code in _BEFORE_WRONG_PHASE):
        return found
    return Violation(Code.WrongPhase, event, f"{event.name} comes first: a job begins with submit")


def effect(job: Job, event: ev.Event) -> Job:
    """The job after ``event``, whether it was allowed to happen or not. Total: never raises."""
    if job.phase is INACTIVE:
        return job
    return _RULES[type(event)][1](job, event)


def apply(job: Job, event: ev.Event) -> Job:
    """The job after ``event``.

    Raises :class:`ProtocolViolation` if it may not happen now; ``job`` is a value, and as it was.
    """
    may, do = _RULES[type(event)]
    if job.phase is INACTIVE or job.phase is UNBORN:
        may = guard
    if may and (violation := may(job, event)):
        raise violation
    return do(job, event)


def decide(job: Job, queued: Iterable[ev.Event] = ()) -> ev.PartialFree | ev.Free | ev.Clean | None:
    """The event that the job manager posts next, or ``None``.

    ``queued``: the events that plugins have posted and that are not applied yet. While an ``epilog-start`` is among
    them nothing is decided, so that it finds its ranks.
    """
    if job.phase is not CLEANUP or any(event.name == "epilog-start" for event in queued):
        return None
    for event in (ev.Free(), ev.Clean()):
        if guard(job, event) is None:
            return event
    ranks = job.releasable
    if ranks == job.held and job.last_rank is LastRank.KEEP and ranks:
        ranks -= IdSet([ranks.min()])
    return ev.PartialFree(ranks) if ranks else None


def settle(job: Job) -> tuple[Job, tuple[ev.Event, ...]]:
    """Apply what :func:`decide` says until it says nothing. Returns the job then, and the events in order."""
    posted: list[ev.Event] = []
    while (event := decide(job)) is not None:
        job = apply(job, event)
        posted.append(event)
    return job, tuple(posted)
