"""What must always hold of an instance, under the names of the specification. Predicates: no I/O, no clock.

Some are about a state, the others about a step: the instance before, the input, and the instance after. A liveness rule
stands here as the state that it forbids: with sending and taking one step, what must happen at last has happened.
"""
# ruff: noqa: N802 (the names of the specification)

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from .events import JobException
from .idset import NO_RANKS, IdSet
from .instance import Completed, Input, Instance, JobEvent, Restart
from .job import Phase
from .scheduler import union

__all__ = [
    "INSTANCE_STATE_RULES",
    "INSTANCE_STEP_RULES",
    "AccountedOnce",
    "FreeAfterHousekeeping",
    "NoDoubleBooking",
    "OffNodeFreed",
    "OffNodeHeld",
    "ReferencedIsAllocated",
    "ReleasedOnce",
    "broken_instance_rules",
]


def NoDoubleBooking(instance: Instance) -> bool:
    """The scheduler never believes that two jobs own one (node-exclusive) rank."""
    return _disjoint(instance.scheduler.allocated.values())


def ReferencedIsAllocated(instance: Instance) -> bool:
    """What a job references, or has in housekeeping, the scheduler has allocated to that job."""
    return all(
        member.job.referenced | member.housekeeping.running | member.housekeeping.done <= _allocated(instance, id_)
        for id_, member in instance.members.items()
        if not member.bypass
    )


def AccountedOnce(instance: Instance) -> bool:
    """In the job manager's books each allocated rank belongs to one job, as held or in housekeeping."""
    parts = [
        part
        for member in instance.members.values()
        if not member.bypass
        for part in (member.job.held, member.housekeeping.running, member.housekeeping.done)
    ]
    books = {id_: member.books for id_, member in instance.members.items()}
    as_believed = all(ranks == _allocated(instance, id_) for id_, ranks in books.items())
    return _disjoint(parts) and _disjoint(books.values()) and as_believed


def OffNodeHeld(instance: Instance) -> bool:
    """The scheduler gets ``final``, and the off-node part with it, only after ``free``: when no holder was active.

    (An epilog that starts after ``free`` finds nothing of the job, and ``final`` may go while it is active.)
    """
    return all(
        id_ in instance.scheduler.off_node
        for id_, member in instance.members.items()
        if _has_off_node(instance, id_) and not member.job.closed
    )


def OffNodeFreed(instance: Instance) -> bool:
    """Once the job is INACTIVE and housekeeping is done, its off-node resources are free again."""
    return all(
        id_ not in instance.scheduler.off_node
        for id_, member in instance.members.items()
        if member.job.phase is Phase.INACTIVE and not member.housekeeping.running | member.housekeeping.done
    )


def ReleasedOnce(before: Instance, input_: Input, after: Instance) -> bool:
    """A rank is handed over at most once, and freed at most once: once freed, the job never has it again."""
    return all(
        _freed(before, id_) <= _freed(after, id_)
        and _freed(after, id_).isdisjoint(member.books | _allocated(after, id_))
        and before.member(id_).job.released <= member.job.released
        for id_, member in after.members.items()
        if not member.bypass
    )


def FreeAfterHousekeeping(before: Instance, input_: Input, after: Instance) -> bool:
    """No rank is freed before its housekeeping is done; but for a restart, and what the scheduler takes away."""
    if isinstance(input_, Restart) or (isinstance(input_, JobEvent) and isinstance(input_.event, JobException)):
        return True
    completed = {input_.job: input_.ranks} if isinstance(input_, Completed) else {}
    return all(
        _allocated(before, id_) - _allocated(after, id_) <= member.housekeeping.done | completed.get(id_, NO_RANKS)
        for id_, member in before.members.items()
    )


def _freed(instance: Instance, id_: int) -> IdSet:
    return instance.member(id_).housekeeping.freed


def _allocated(instance: Instance, id_: int) -> IdSet:
    return instance.scheduler.allocated.get(id_, NO_RANKS)


def _has_off_node(instance: Instance, id_: int) -> bool:
    member = instance.members[id_]
    return id_ in instance.scheduler.has_off_node and bool(member.job.allocation) and not member.bypass


def _disjoint(sets: Iterable[IdSet]) -> bool:
    sets = tuple(sets)
    return sum(map(len, sets)) == len(union(sets))


INSTANCE_STATE_RULES: Final[dict[str, Callable[[Instance], bool]]] = {
    rule.__name__: rule for rule in (NoDoubleBooking, ReferencedIsAllocated, AccountedOnce, OffNodeHeld, OffNodeFreed)
}
INSTANCE_STEP_RULES: Final[dict[str, Callable[[Instance, Input, Instance], bool]]] = {
    rule.__name__: rule for rule in (ReleasedOnce, FreeAfterHousekeeping)
}


def broken_instance_rules(before: Instance, input_: Input, after: Instance) -> list[str]:
    """The names of the rules that the step breaks: those of a step, and those of the state that it leads to."""
    step = [name for name, rule in INSTANCE_STEP_RULES.items() if not rule(before, input_, after)]
    return step + [name for name, rule in INSTANCE_STATE_RULES.items() if not rule(after)]
