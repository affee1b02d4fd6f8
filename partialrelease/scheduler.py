"""What the scheduler believes: of each job, the ranks that it has allocated to it (RFC 27). No I/O, no clock.

How it works. The scheduler *grants* a job ranks that it believes free, and with them the *off-node part* of R, if R has
one (rabbit storage, say; it has no rank). Ranks come back in fragments, each a part of what is still allocated.
The off-node part comes back with the last fragment, which says ``final`` and may be empty.

A scheduler that starts knows nothing. The job manager then says *hello*: a response for each job that has an
allocation, with the R of the job and the ranks of it that were given back already (``free``). A scheduler that does not
understand ``free`` (no ``partial-ok`` in its request) takes the whole R.

Fluxion, as version 0.54 was seen to behave, is the variant that matters. A fragment without ``final`` that takes a
job's last rank makes it forget the job: its off-node part is never given back. The final fragment that comes
later is taken without complaint and does nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import evolve, field, frozen

from .idset import NO_RANKS, IdSet, in_words
from .instance_error import InstanceCode, InstanceError

__all__ = ["HelloResponse", "Scheduler", "drop", "free", "free_guard", "grant", "grant_guard", "hello"]


@frozen
class HelloResponse:
    """What the job manager tells a new scheduler of one job: the ranks of its R, and those of them that are free."""

    job: int
    ranks: IdSet
    free: IdSet = NO_RANKS


def items(mapping: Mapping[int, Any]) -> frozenset[tuple[int, Any]]:
    """What makes a mapping equal to another, and hashable."""
    return frozenset(mapping.items())


@frozen
class Scheduler:
    """What a scheduler is, and what it believes.

    ``partial_ok``: it understands ``free`` in a hello response. ``fluxion``: it forgets a job with its last rank.
    ``has_off_node``: the jobs whose R has an off-node part; nobody but the scheduler can tell.

    ``allocated``: the ranks that each job has, of the jobs that it knows. ``off_node``: the jobs whose off-node part is
    allocated; of one that it does not know, it is for good.
    """

    partial_ok: bool = True
    fluxion: bool = False
    has_off_node: frozenset[int] = frozenset()
    allocated: Mapping[int, IdSet] = field(factory=dict, eq=items)
    off_node: frozenset[int] = frozenset()

    @property
    def all_allocated(self) -> IdSet:
        """Every rank that it believes allocated, to whichever job."""
        return union(self.allocated.values())


def union(sets: Iterable[IdSet]) -> IdSet:
    """The ranks that are in any of ``sets``."""
    ranks = NO_RANKS
    for each in sets:
        ranks |= each
    return ranks


# grant: the scheduler believes the ranks free.


def grant_guard(scheduler: Scheduler, job: int, ranks: IdSet) -> InstanceError | None:
    if taken := ranks & scheduler.all_allocated:
        return InstanceError(InstanceCode.NotFree, f"job {job} is granted {in_words(taken)}, allocated already", taken)
    return None


def grant(scheduler: Scheduler, job: int, ranks: IdSet) -> Scheduler:
    return evolve(
        scheduler,
        allocated={**scheduler.allocated, job: ranks},
        off_node=scheduler.off_node | (scheduler.has_off_node & {job}),
    )


# free: the fragment is a part of what the job still has.


def free_guard(scheduler: Scheduler, job: int, ranks: IdSet, final: bool) -> InstanceError | None:
    if missing := ranks - scheduler.allocated.get(job, NO_RANKS):
        return InstanceError(
            InstanceCode.NotAllocated,
            f"job {job} gives back {in_words(missing)}, not allocated to it",
            missing,
        )
    if job not in scheduler.allocated and not (scheduler.fluxion and final):
        return InstanceError(InstanceCode.NotAllocated, f"job {job} gives back ranks, but it has no allocation")
    return None


def free(scheduler: Scheduler, job: int, ranks: IdSet, final: bool) -> Scheduler:
    if job not in scheduler.allocated:
        return scheduler
    if final:
        return drop(scheduler, job)
    left = scheduler.allocated[job] - ranks
    if scheduler.fluxion and not left:
        return evolve(scheduler, allocated=_without(scheduler.allocated, job))
    return evolve(scheduler, allocated={**scheduler.allocated, job: left})


def drop(scheduler: Scheduler, job: int) -> Scheduler:
    """The job has nothing any more."""
    return evolve(scheduler, allocated=_without(scheduler.allocated, job), off_node=scheduler.off_node - {job})


def _without(allocated: Mapping[int, IdSet], job: int) -> Mapping[int, IdSet]:
    return {other: ranks for other, ranks in allocated.items() if other != job}


# hello: always. A new scheduler allocates each job's R and frees what is free of it; overlaps go by without a word.


def hello(scheduler: Scheduler, responses: Iterable[HelloResponse]) -> Scheduler:
    """The scheduler that has taken these responses, whatever ``scheduler`` believed before."""
    scheduler = evolve(scheduler, allocated={}, off_node=frozenset())
    for response in responses:
        scheduler = grant(scheduler, response.job, response.ranks)
        if response.free and scheduler.partial_ok:
            scheduler = free(scheduler, response.job, response.free, final=False)
    return scheduler
