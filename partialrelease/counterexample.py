"""A counterexample of TLC as an eventlog: what happened in each step of one job, told from the state before and after.

TLC names a step's action at best, without its arguments, and a rejected design has actions of its own. So the event is
told from what changed. A step that changes nothing of the job itself, such as the posting of an event that is to be
applied later, becomes a ``debug.`` event, which is legal anywhere and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from attrs import fields, frozen

from . import events as ev
from .idset import ALL_RANKS, IdSet
from .job import Job, LastRank, effect, guard
from .tlavalue import Value, read_value
from .tlc import TraceState

__all__ = ["first_departure", "is_of_one_job", "to_entries"]

_BEGIN: Final = 1e9  # the first state's time; each further state comes a second later

_Ranks = frozenset[int]


@frozen
class _State:
    """The variables of PartialRelease. What ``all`` references before the allocation is every rank."""

    phase: str
    exec: str
    execRanks: _Ranks  # noqa: N815  # the names of the spec
    actions: Mapping[str, _Ranks]
    allocation: _Ranks
    held: _Ranks
    released: _Ranks
    closed: bool


_VARIABLES: Final = tuple(attribute.name for attribute in fields(_State))


def is_of_one_job(trace: Sequence[TraceState]) -> bool:
    """Whether the states are those of one job from before its submission, so that there is an eventlog."""
    return bool(trace) and trace[0].values.get("phase") == '"-"' and trace[0].values.keys() >= set(_VARIABLES)


def to_entries(trace: Sequence[TraceState], constants: Mapping[str, Value]) -> list[ev.Entry]:
    """The entries of the eventlog; ``alloc`` says its ranks in an annotation. ``constants``: those of the model."""
    numbers = _rank_numbers(trace, constants)
    states = [_read(state, numbers) for state in trace]
    entries: list[ev.Entry] = []
    for was, now, before, after in zip(states, states[1:], trace, trace[1:], strict=False):
        event = _changed(was, now, after.action, constants, _queued(before, numbers))
        if event is None:
            event = _unchanged(was, before, after, constants)
        entries.append(ev.Entry(len(entries) + 1, None, _BEGIN + len(entries), event))
    return entries


def first_departure(trace: Sequence[TraceState], constants: Mapping[str, Value], entries: Sequence[ev.Entry]) -> str:
    """Where the counterexample leaves the rules, as :mod:`partialrelease.job` has them; ``""`` if it nowhere does."""
    numbers = _rank_numbers(trace, constants)
    every = frozenset(numbers.values())
    job = Job(LastRank(str(constants.get("LastRank", LastRank.KEEP))))
    for state, entry in zip(trace[1:], entries, strict=True):
        place = f"state {state.number}, `{entry.event.name}`"
        if found := guard(job, entry.event):
            return f"{place}: {found}"
        job = effect(job, entry.event)
        model, rules = _read(state, numbers), _of_job(job, every)
        for name in _VARIABLES:
            ours, theirs = getattr(rules, name), getattr(model, name)
            if ours != theirs:
                return f"{place}: may happen, but by the rules `{name}` is then {_text(ours)}, and not {_text(theirs)}"
    return ""


# -- states --


def _rank_numbers(trace: Sequence[TraceState], constants: Mapping[str, Value]) -> dict[str, int]:
    """Which rank a model value of Ranks is: the number that its name ends with, or its place if these do not differ."""
    seen = {str(rank) for state in trace for rank in cast(Any, read_value(state.values["allocation"]))}
    names = sorted(_names(constants, "Ranks") | seen)
    ends = [name[len(name.rstrip("0123456789")) :] for name in names]
    if all(ends) and len(set(map(int, ends))) == len(names):
        return {name: int(end) for name, end in zip(names, ends, strict=True)}
    return {name: place for place, name in enumerate(names)}


def _read(state: TraceState, numbers: Mapping[str, int]) -> _State:
    def ranks(value: Any) -> _Ranks:
        return frozenset(numbers[str(name)] for name in value)

    values: dict[str, Any] = {name: read_value(state.values[name]) for name in _VARIABLES}
    for name in ("execRanks", "allocation", "held", "released"):
        values[name] = ranks(values[name])
    values["actions"] = {str(name): ranks(of) for name, of in dict(values["actions"]).items()}
    return _State(**values)


def _of_job(job: Job, every: _Ranks) -> _State:
    def ranks(of: IdSet) -> _Ranks:
        return every if of == ALL_RANKS else frozenset(of)

    actions = {holder.description: ranks(holder.ranks) for holder in job.actions}
    sets = ranks(job.allocation), ranks(job.held), ranks(job.released)
    return _State(job.phase.value, job.exec.value, ranks(job.exec_ranks), actions, *sets, job.closed)


def _queued(state: TraceState, numbers: Mapping[str, int]) -> dict[str, IdSet | None]:
    """What the epilog-starts that are posted and not applied say about their ranks, in a model that has such."""
    queued = dict(cast(Any, read_value(state.values.get("queued", "<<>>"))))
    said = {name: dict(posted)["ranks"] for name, posted in queued.items()}
    return {
        name: IdSet(numbers[rank] for rank in ranks) if isinstance(ranks, frozenset) else None
        for name, ranks in said.items()
    }


def _text(value: object) -> str:
    if isinstance(value, frozenset):
        return f'"{IdSet(value)}"'
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_text(ranks)}" for name, ranks in sorted(value.items())) or "none"
    return str(value)


# -- the event between two states --


def _changed(
    was: _State, now: _State, action: str, constants: Mapping[str, Value], queued: Mapping[str, IdSet | None]
) -> ev.Event | None:
    """The event that makes of the one state the other; ``None`` if none does."""
    gone = was.held - now.held
    if now.allocation != was.allocation:
        ranks = IdSet(now.allocation)
        summary = f"rank[{ranks}]/core0" if len(ranks) > 1 else f"rank{ranks}/core0"
        return ev.Alloc(ranks, {"sched": {"resource_summary": summary}})
    if (was.phase, now.phase) in _PHASES:
        return _PHASES[was.phase, now.phase]
    if now.closed and not was.closed:
        by_loss = not gone <= now.released or action in ("SchedulerRestart", "Report")
        return ev.JobException("scheduler-restart", 0) if by_loss else ev.Free()
    if gone:
        return ev.PartialFree(IdSet(gone))
    if event := _of_actions(was, now, constants, queued):
        return event
    if now.exec != was.exec:
        return _EXECS.get(now.exec)
    if now.execRanks < was.execRanks:
        return ev.Release(IdSet(was.execRanks - now.execRanks))
    if now.phase != was.phase and now.phase == "CLEANUP":
        return ev.JobException("scheduler-restart" if action == "SchedulerRestart" else "cancel", 0)
    return None


_PHASES: Final[dict[tuple[str, str], ev.Event]] = {
    ("-", "NEW"): ev.Submit(),
    ("NEW", "DEPEND"): ev.Validate(),
    ("NEW", "INACTIVE"): ev.Invalidate(),
    ("DEPEND", "PRIORITY"): ev.Depend(),
    ("PRIORITY", "SCHED"): ev.Priority(),
    ("SCHED", "PRIORITY"): ev.Urgency(),
    ("CLEANUP", "INACTIVE"): ev.Clean(),
}
_EXECS: Final[dict[str, ev.Event]] = {"running": ev.Start(), "finished": ev.Finish(), "done": ev.Release(final=True)}


def _of_actions(
    was: _State, now: _State, constants: Mapping[str, Value], queued: Mapping[str, IdSet | None]
) -> ev.Event | None:
    prologs = _names(constants, "Prologs")
    for name in now.actions:
        had, has = was.actions.get(name), now.actions[name]
        if had is None and name in prologs:
            return ev.PrologStart(name)
        if had is None or not has <= had:
            all_ = bool(has) and not has < now.held
            return ev.EpilogStart(name, queued.get(name, None if all_ else IdSet(has)))
        if has < had:
            return ev.Release(IdSet(had - has), description=name)
    for name in was.actions:
        if name not in now.actions:
            return ev.PrologFinish(name) if name in prologs else ev.EpilogFinish(name)
    return None


def _unchanged(was: _State, before: TraceState, after: TraceState, constants: Mapping[str, Value]) -> ev.Event:
    """A step that left the job as it was; what else changed is in the event's context."""
    idle = sorted(_names(constants, "Epilogs") - set(was.actions))
    if after.action.endswith("EpilogFinish") and idle:
        return ev.EpilogFinish(idle[0])
    changed = {name: text for name, text in after.values.items() if text != before.values.get(name)}
    return ev.Unknown(f"debug.{after.action or 'step'}", extra=changed)


def _names(constants: Mapping[str, Value], name: str) -> set[str]:
    value = constants.get(name, ())
    return set(map(str, value)) if isinstance(value, Iterable) else set()
