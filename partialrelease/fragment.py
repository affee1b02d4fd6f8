"""Replay a log whose beginning is cut off.

What came before is not known, so a fragment is replayed from every state that it may begin in; a state that
the log refutes is dropped. Only what no state left allows is a violation: nothing is reported that the missing part
could explain. A fragment begins before CLEANUP (running, before all) if it can; only if its first telling event rules
that out, it begins in CLEANUP or in a prolog, where actions may be active whose start is not in the log.
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
    """A state, and what it allows for.

    ``open``: actions may be active that it does not know. ``adopted``: those that showed themselves since, each on the
    ranks that it may reference; in the job they are active on none, which is all that is certain.
    """

    job: Job
    open: bool
    adopted: tuple[Holder, ...] = ()

    def after(self, event: ev.Event) -> _Start | None:
        """The state after ``event``, or ``None`` if this state refuses it."""
        violation = guard(self.job, event)
        if violation is None:
            adopted = self.adopted
            if isinstance(event, ev.EpilogFinish | ev.PrologFinish):
                adopted = tuple(holder for holder in adopted if holder.description != event.description)
            return evolve(self, job=effect(self.job, event), adopted=adopted)
        if not self.open:
            return None
        if violation.code is Code.UnknownHolder:
            return self._adopting(event).after(event)
        if violation.code is Code.NotHeld and isinstance(event, ev.Release):
            return self._dropping(event)
        if violation.code is Code.WrongPhase and isinstance(event, ev.PartialFree):
            return evolve(self, job=effect(self.job, event))  # an action is active of which nothing is known
        return None

    def _adopting(self, event: Any) -> _Start:
        kind = HolderKind.PROLOG if isinstance(event, ev.PrologFinish) else HolderKind.EPILOG
        active = Holder(kind, event.description, NO_RANKS)
        adopted = Holder(kind, event.description, self.job.held)
        job = evolve(self.job, actions=(*self.job.actions, active))
        return evolve(self, job=job, adopted=(*self.adopted, adopted))

    def _dropping(self, event: ev.Release) -> _Start | None:
        """An adopted epilog drops ranks that it may reference."""
        for index, holder in enumerate(self.adopted):
            if holder.description == event.description and event.ranks <= holder.ranks:
                left = evolve(holder, ranks=holder.ranks - event.ranks)
                return evolve(self, adopted=(*self.adopted[:index], left, *self.adopted[index + 1 :]))
        return None


def _starts(last_rank: LastRank, ranks: IdSet) -> tuple[list[_Start], list[_Start]]:
    """The states that a fragment may begin in, the likeliest first: before CLEANUP, and the others."""

    def owning(phase: Phase, exec_: Exec, open_: bool = False, **more: Any) -> _Start:
        has = NO_RANKS if exec_ is Exec.IDLE or exec_ is Exec.DONE else ranks
        state: dict[str, Any] = {
            "phase": phase,
            "exec": exec_,
            "exec_ranks": has,
            "allocation": ranks,
            "held": ranks,
        }
        return _Start(Job(last_rank, **(state | more)), open_)

    early = [
        owning(Phase.RUN, Exec.RUNNING),
        owning(Phase.RUN, Exec.REQUESTED),
        *(
            _Start(Job(last_rank, phase=phase), False)
            for phase in (Phase.SCHED, Phase.PRIORITY, Phase.DEPEND, Phase.NEW)
        ),
    ]
    late = [
        owning(Phase.CLEANUP, Exec.FINISHED, True),
        owning(Phase.CLEANUP, Exec.RUNNING, True),
        owning(Phase.CLEANUP, Exec.REQUESTED, True),
        owning(Phase.CLEANUP, Exec.DONE, True),
        owning(Phase.CLEANUP, Exec.DONE, True, held=NO_RANKS, released=ranks, closed=True),
        _Start(Job(last_rank, phase=Phase.CLEANUP), True),
        owning(Phase.RUN, Exec.IDLE, True),
    ]
    return early, late


@define
class Fragment:
    """The states that a job may be in whose log is a fragment."""

    states: list[_Start]
    late: list[_Start] | None  # what to begin with if no early state can; None: something has been told

    @classmethod
    def of(cls, last_rank: LastRank, ranks: IdSet) -> Fragment:
        """A job of which nothing has been seen. ``ranks``: those that it has if it has any."""
        return cls(*_starts(last_rank, ranks))

    @property
    def job(self) -> Job:
        """The likeliest state."""
        return self.states[0].job

    def apply(self, event: ev.Event) -> Job:
        """Go on with ``event``; returns the likeliest state then.

        Raises the :class:`ProtocolViolation` that the event is in every state that is left, if it is one; then
        too the fragment has gone on.
        """
        left = _left(self.states, event)
        if not left and self.late and not isinstance(event, ev.Malformed):
            left = _left(self.late, event)
            self.late = None
        elif len(left) < len(self.states):
            self.late = None
        violation = None if left else guard(self.job, event)
        if violation is not None:
            left = [evolve(state, job=effect(state.job, event)) for state in self.states]
        self.states = list(dict.fromkeys(left))
        if violation is not None:
            raise violation
        return self.job


def _left(states: list[_Start], event: ev.Event) -> list[_Start]:
    return [after for state in states if (after := state.after(event)) is not None]
