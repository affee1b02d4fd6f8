"""What must always hold of one job, each rule under its name in the specification: to check an implementation with.

The rules speak of what can be seen of a :class:`~partialrelease.job.Job`. They know nothing of how the machine decides
whether an event may happen, so they can tell when it decides wrongly. A step is a job, an event, and the job after it;
:func:`broken_rules` says which rules a step breaks.

``EarlyRelease``, ``EventuallyClean`` and ``QueuedEpilogSeesAll`` are about what the job manager posts. They take its
decisions, ``decide(job, queued)``, so that another manager's can be tried too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Final

from . import events as ev
from .idset import NO_RANKS, IdSet
from .job import Exec, HolderKind, Job, LastRank, Phase, ProtocolViolation, apply
from .job import decide as decides

__all__ = [
    "STATE_RULES",
    "STEP_RULES",
    "CleanIsLast",
    "EarlyRelease",
    "EventuallyClean",
    "FinalIsLast",
    "NoReleaseWhileReferenced",
    "QueuedEpilogSeesAll",
    "ReferencesAreHeld",
    "ReferencesShrink",
    "ReleaseGate",
    "ReleasedOnce",
    "ReplayIsState",
    "broken_rules",
]

Decide = Callable[[Job, Sequence[ev.Event]], ev.Event | None]

# -- of a state ------------------------------------------------------------------------------------------------------


def ReferencesAreHeld(job: Job) -> bool:
    """A reference is only ever on ranks that the job still holds. (Before the allocation it is on none yet.)"""
    references = [job.exec_ranks, *(holder.ranks for holder in job.actions if job.allocation)]
    return all(ranks <= job.held for ranks in references)


# -- of a step -------------------------------------------------------------------------------------------------------


def NoReleaseWhileReferenced(before: Job, event: ev.Event, after: Job) -> bool:
    """No rank is handed over while an active holder references it."""
    return all(holder.ranks.isdisjoint(_handed_over(before, after)) for holder in before.holders)


def ReleaseGate(before: Job, event: ev.Event, after: Job) -> bool:
    """Nothing is handed over before CLEANUP, nor between start request and ``finish`` (or the final release)."""
    busy = before.exec in (Exec.REQUESTED, Exec.RUNNING)
    return not _handed_over(before, after) or (before.phase is Phase.CLEANUP and not busy)


def ReleasedOnce(before: Job, event: ev.Event, after: Job) -> bool:
    """A rank is handed over at most once: it was held, and never is again."""
    was_held = _handed_over(before, after) <= before.held
    return was_held and before.released <= after.released and after.released.isdisjoint(after.held)


def FinalIsLast(before: Job, event: ev.Event, after: Job) -> bool:
    """``free`` comes once, when no holder is active; after it the job holds nothing.

    (Nor does it after the loss of its allocation, the other end of one.)
    """
    if before.closed:
        return after.closed and not after.held and not _handed_over(before, after) and not isinstance(event, ev.Free)
    if isinstance(event, ev.Free):
        return after.closed and not after.held and not before.holders
    return not after.closed or (isinstance(event, ev.JobException) and not after.held)


def CleanIsLast(before: Job, event: ev.Event, after: Job) -> bool:
    """``clean`` needs no active holder and nothing still held; INACTIVE has no exit."""
    if before.phase is Phase.INACTIVE:
        return after == before
    ends = before.phase is Phase.CLEANUP and after.phase is Phase.INACTIVE
    return not ends or (not before.holders and before.exec is not Exec.REQUESTED and not before.held)


def ReferencesShrink(before: Job, event: ev.Event, after: Job) -> bool:
    """No step grows a reference."""
    had: dict[tuple[HolderKind, str], IdSet] = {}
    for holder in before.actions:
        name = holder.kind, holder.description
        had[name] = had.get(name, NO_RANKS) | holder.ranks
    shrink = all(holder.ranks <= had.get((holder.kind, holder.description), holder.ranks) for holder in after.actions)
    return shrink and (before.exec is Exec.IDLE or after.exec_ranks <= before.exec_ranks)


def QueuedEpilogSeesAll(before: Job, event: ev.Event, after: Job, decide: Decide = decides) -> bool:
    """An ``epilog-start`` for all ranks that was queued when the gate opened references the whole allocation.

    (But for what was lost.) That is: where the step opens the gate, the job manager does what it will while the
    ``epilog-start`` is queued; and then that is applied.
    """
    if before.gate_open or not after.gate_open:
        return True
    unused = "".join(["another", *(holder.description for holder in after.actions)])
    start = ev.EpilogStart(unused)
    try:
        job = apply(_decided(after, decide, [start]), start)
    except ProtocolViolation:
        return False
    return job.allocation - job.lost <= job.actions[-1].ranks


# -- of a run --------------------------------------------------------------------------------------------------------


def ReplayIsState(log: Iterable[ev.Event], job: Job) -> bool:
    """State is a function of the log: a replay of what the log says leads to the job.

    What it says: each event's name and context, and R beside it.
    """
    said = (
        ev.make_event(event.name, ev.to_context(event), event.ranks if isinstance(event, ev.Alloc) else NO_RANKS)
        for event in log
    )
    return reduce(apply, said, Job(job.last_rank)) == job


def EarlyRelease(job: Job, decide: Decide = decides) -> bool:
    """An unreferenced rank behind an open gate is handed over even if other holders never finish.

    That is: when the job manager has done what it will, nothing is releasable; with ``last_rank=keep`` a job that holds
    one rank may keep that.
    """
    job = _decided(job, decide)
    return not job.releasable or (job.last_rank is LastRank.KEEP and len(job.held) == 1)


def EventuallyClean(job: Job, decide: Decide = decides) -> bool:
    """If every holder finishes, every rank is handed over (or lost) and the job becomes INACTIVE.

    That is: of a job in RUN or CLEANUP, whatever the order in which its holders finish and the job manager decides,
    when nothing of that is left to do.
    """
    if job.phase not in (Phase.RUN, Phase.CLEANUP):
        return True
    seen, todo = {job}, [job]
    while todo:
        here = todo.pop()
        following = {apply(here, event) for event in [decide(here, ()), *_finishes(here)] if event is not None}
        if not following and (here.phase is not Phase.INACTIVE or here.held):
            return False
        todo += following - seen
        seen |= following
    return True


def _finishes(job: Job) -> list[ev.Event]:
    """The events by which each holder finishes, as far as it can now; of the exec system also before ``start``."""
    finishes: list[ev.Event] = [
        ev.EpilogFinish(holder.description) if holder.kind is HolderKind.EPILOG else ev.PrologFinish(holder.description)
        for holder in job.actions
    ]
    if job.exec in (Exec.REQUESTED, Exec.RUNNING):
        finishes.append(ev.Finish())
    if job.exec is Exec.FINISHED or (job.exec is Exec.REQUESTED and job.phase is Phase.CLEANUP):
        finishes.append(ev.Release(final=True))
    return finishes if job.phase is not Phase.INACTIVE else []


def _handed_over(before: Job, after: Job) -> IdSet:
    return after.released - before.released


def _decided(job: Job, decide: Decide, queued: Sequence[ev.Event] = ()) -> Job:
    """The job when the job manager has done what it will."""
    while event := decide(job, queued):
        job = apply(job, event)
    return job


# -- the rules by their names ----------------------------------------------------------------------------------------

STATE_RULES: Final[dict[str, Callable[[Job], bool]]] = {
    rule.__name__: rule for rule in (ReferencesAreHeld, EarlyRelease, EventuallyClean)
}
STEP_RULES: Final[dict[str, Callable[[Job, ev.Event, Job], bool]]] = {
    rule.__name__: rule
    for rule in (
        NoReleaseWhileReferenced,
        ReleaseGate,
        ReleasedOnce,
        FinalIsLast,
        CleanIsLast,
        ReferencesShrink,
        QueuedEpilogSeesAll,
    )
}


def broken_rules(before: Job, event: ev.Event, after: Job) -> list[str]:
    """The names of the rules that the step breaks: those of a step, and those of the state that it leads to."""
    step = [name for name, rule in STEP_RULES.items() if not rule(before, event, after)]
    return step + [name for name, rule in STATE_RULES.items() if not rule(after)]
