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
    """A state, and whether actions may be active in it that it does not know."""

    job: Job
    open: bool

    def after(self, event: ev.Event) -> _Start | None:
        """The state after ``event``, or ``None`` if this state refuses it."""
        job = self.job
        violation = guard(job, event)
        if violation is not None:
            if not self.open:
                return None
            if violation.code is Code.UnknownHolder:
                job = _adopt(job, event)
            elif violation.code is not Code.WrongPhase or not isinstance(event, ev.PartialFree):
                return None
        return _Start(effect(job, event), self.open)


def _adopt(job: Job, event: Any) -> Job:
    """The job with the action that ``event`` names, active on the least ranks that explain the event."""
    kind = HolderKind.PROLOG if isinstance(event, ev.PrologFinish) else HolderKind.EPILOG
    ranks = event.ranks & job.held if isinstance(event, ev.Release) else NO_RANKS
    holder = Holder(kind, event.description, ranks)
    return evolve(job, actions=(*job.actions, holder))


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
            left = [_Start(effect(state.job, event), state.open) for state in self.states]
        self.states = list(dict.fromkeys(left))
        if violation is not None:
            raise violation
        return self.job


def _left(states: list[_Start], event: ev.Event) -> list[_Start]:
    return [after for state in states if (after := state.after(event)) is not None]
