"""Replay a log whose beginning is cut off.

What came before is not known, so a fragment is replayed from every state that it may begin in; a state that the log
refutes is dropped. Only what no state left allows is a violation. In the states before CLEANUP all actions are known;
in the others (CLEANUP, or in a prolog) actions may be active whose start is not in the log, on ranks that are not known
either. A log that may begin before CLEANUP, and goes on to ``alloc`` or ``start``, is taken to do so: else the finish
of an epilog that never started could always be explained. Whoever knows that the job was running where the log begins
can say so; then ``finish`` tells as much.
"""

from __future__ import annotations

from typing import Any

from attrs import define, evolve, frozen

from . import events as ev
from .idset import NO_RANKS, IdSet
from .job import Code, Exec, Holder, HolderKind, Job, LastRank, Phase, effect, guard

__all__ = ["Fragment"]


@frozen(slots=False)
class _Start:
    """A state that the log may have begun in, as it is by now.

    ``open``: holders may be active in it that it does not know. ``adopted``: those that have shown themselves since,
    each on the ranks that it may reference. In the job they reference none, which is all that is certain.
    """

    job: Job
    open: bool = False
    adopted: tuple[Holder, ...] = ()

    def after(self, event: ev.Event) -> _Start | None:
        """The state after ``event``, or ``None`` if this state refuses it."""
        violation = guard(self.job, event)
        if violation is None:
            return self._with(event)
        not_started = self.job.exec is Exec.IDLE or self.job.exec is Exec.REQUESTED
        if violation.code is Code.UnknownHolder and (self.open or (not_started and isinstance(event, ev.PrologFinish))):
            return self._adopting(event).after(event)
        if not self.open:
            return None
        if violation.code is Code.NotHeld and isinstance(event, ev.Release):
            return self._dropping(event)
        if violation.code is Code.WrongPhase and isinstance(event, ev.PartialFree) and event.ranks <= self.job.held:
            return self._with(event)  # an action is active of which nothing is known
        return None

    def _with(self, event: ev.Event) -> _Start:
        adopted = self.adopted
        if adopted and isinstance(event, ev.EpilogFinish | ev.PrologFinish):
            adopted = tuple(holder for holder in adopted if holder.description != event.description)
        return evolve(self, job=effect(self.job, event), adopted=adopted)

    def _adopting(self, event: Any) -> _Start:
        """The state in which the action that ``event`` names is active."""
        job = self.job
        kind = HolderKind.EPILOG
        if isinstance(event, ev.PrologFinish):
            kind = HolderKind.PROLOG
            if job.exec is Exec.REQUESTED:  # it was not, then
                job = evolve(job, exec=Exec.IDLE, exec_ranks=NO_RANKS)
        job = evolve(job, actions=(*job.actions, Holder(kind, event.description, NO_RANKS)))
        return evolve(self, job=job, adopted=(*self.adopted, Holder(kind, event.description, job.held)))

    def _dropping(self, event: ev.Release) -> _Start | None:
        """An adopted epilog, or the exec system, drops ranks that it may reference."""
        if event.description is None:
            return self._with(event) if event.ranks <= self.job.held else None
        for index, holder in enumerate(self.adopted):
            if holder.description == event.description and event.ranks <= holder.ranks:
                left = evolve(holder, ranks=holder.ranks - event.ranks)
                return evolve(self, adopted=(*self.adopted[:index], left, *self.adopted[index + 1 :]))
        return None


@define
class Fragment:
    """The states that a job may be in whose log is a fragment.

    ``likely``: those that began before CLEANUP, the likeliest first; the others, once there is none. ``others``: while
    they are still possible.
    """

    likely: list[_Start]
    others: list[_Start]
    _telling: tuple[type[ev.Event], ...]  # after these events of a likely state there are no others

    @classmethod
    def of(cls, last_rank: LastRank, ranks: IdSet, *, running: bool = False) -> Fragment:
        """A job of which nothing has been seen.

        ``ranks``: those that it has if it has any. ``running``: it is known to be running, if it can be.
        """
        pending = [Job(last_rank, phase=p) for p in (Phase.SCHED, Phase.PRIORITY, Phase.DEPEND, Phase.NEW)]
        allocated = Job(last_rank, phase=Phase.RUN, allocation=ranks, held=ranks)
        started = [evolve(allocated, exec=at, exec_ranks=ranks) for at in (Exec.RUNNING, Exec.REQUESTED)]
        held = [evolve(allocated, phase=Phase.CLEANUP, exec=at) for at in Exec]
        closed = [evolve(job, held=NO_RANKS, released=ranks, closed=True) for job in held]
        never = Job(last_rank, phase=Phase.CLEANUP)
        others = [*held, *closed, never, allocated]  # the last: in a prolog
        telling = (ev.Alloc, ev.Start, ev.Finish) if running else (ev.Alloc, ev.Start)
        before = [_Start(job) for job in (*started, *pending)]
        return cls(before, [_Start(job, open=True) for job in others], telling)

    @property
    def job(self) -> Job:
        """The likeliest state."""
        return self.likely[0].job

    def apply(self, event: ev.Event) -> Job:
        """Go on with ``event``; returns the likeliest state then.

        Raises the :class:`ProtocolViolation` that the event is in every state that is left, if it is one; then
        too the fragment has gone on.
        """
        likely, others = _left(self.likely, event), _left(self.others, event)
        if likely or others:
            presumed = bool(likely) and isinstance(event, self._telling)
            self.likely, self.others = likely or others, others if likely and not presumed else []
            return self.job
        violation = guard(self.job, event)
        self.likely, self.others = _forced(self.likely, event), _forced(self.others, event)
        assert violation is not None  # the likeliest state has refused it
        raise violation


def _left(starts: list[_Start], event: ev.Event) -> list[_Start]:
    return list(dict.fromkeys(after for start in starts if (after := start.after(event)) is not None))


def _forced(starts: list[_Start], event: ev.Event) -> list[_Start]:
    return list(dict.fromkeys(evolve(start, job=effect(start.job, event)) for start in starts))
