"""The instance as a :class:`~.state_graph.Machine`: its state graph is compared with that of `Instance` in TLA+."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations

from . import events as ev
from .housekeeping import Housekeeping
from .idset import ALL_RANKS, NO_RANKS, IdSet
from .instance import Completed, Input, Instance, JobEvent, Restart, SchedulerReload, Settings, TimerExpired
from .instance_error import InstanceError
from .job import Job, ProtocolViolation
from .scheduler import Scheduler
from .state_graph import Machine
from .tlavalue import Function, Value, show_value

__all__ = ["several_jobs"]


def several_jobs(settings: Settings, jobs: int = 2, ranks: int = 2, epilogs: int = 1) -> Machine[Instance, Input]:
    """``Instance`` in both languages, with jobs 1, 2, ..., so many ranks, and descriptions of epilogs."""
    ids, every = range(1, jobs + 1), IdSet(range(ranks))
    names = [f"e{n}" for n in range(epilogs)]

    def step(instance: Instance, input_: Input) -> Instance | None:
        try:
            return instance.apply(input_)[0]
        except (InstanceError, ProtocolViolation):
            return None

    def values(instance: Instance) -> dict[str, Value]:
        members = {id_: instance.member(id_) for id_ in ids}
        return {
            "job": Function({id_: _job(member.job, every) for id_, member in members.items()}),
            "hk": Function({id_: _housekeeping(member.housekeeping) for id_, member in members.items()}),
            "sched": Function({id_: _belief(instance.scheduler, id_) for id_ in ids}),
        }

    after = settings.release_after
    constants = {
        "Jobs": show_value(frozenset(ids)),
        "Ranks": show_value(frozenset(every)),
        "Epilogs": show_value(frozenset(names)),
        "OffNode": show_value(settings.has_off_node & frozenset(ids)),
        "LastRank": show_value(settings.last_rank.value),
        "ReleaseAfter": show_value("unset" if after is None else "timer" if after else "now"),
        "PartialOk": show_value(settings.partial_ok),
        "Fluxion": show_value(settings.fluxion),
        "All": "[PartialRelease]All",
    }
    return Machine("Instance", constants, _inputs(ids, ranks, names), Instance(settings), step, values)


def _job(job: Job, every: IdSet) -> Function:
    return _record(
        phase=job.phase.value,
        exec=job.exec.value,
        execRanks=frozenset(job.exec_ranks),
        actions=Function({holder.description: frozenset(holder.ranks & every) for holder in job.actions}),
        allocation=frozenset(job.allocation),
        held=frozenset(job.held),
        released=frozenset(job.released),
        closed=job.closed,
    )


def _housekeeping(housekeeping: Housekeeping) -> Function:
    return _record(
        running=frozenset(housekeeping.running),
        done=frozenset(housekeeping.done),
        freed=frozenset(housekeeping.freed),
        timer=housekeeping.timer.value,
        closing=housekeeping.closing,
        final=housekeeping.final,
    )


def _belief(scheduler: Scheduler, id_: int) -> Function:
    ranks = frozenset(scheduler.allocated.get(id_, NO_RANKS))
    return _record(allocated=ranks, offNode=id_ in scheduler.off_node)


def _record(**fields: Value) -> Function:
    return Function(fields)


def _inputs(ids: Sequence[int], ranks: int, names: Sequence[str]) -> dict[str, list[Input]]:
    sets = [IdSet(part) for part in chain.from_iterable(combinations(range(ranks), k) for k in range(ranks + 1))]
    parts = {show_value(frozenset(part)): part for part in sets}
    inputs: dict[str, list[Input]] = {"Reload": [SchedulerReload()], "Restart": [Restart()]}
    for id_ in ids:
        events: dict[str, ev.Event] = {
            f"Submit({id_})": ev.Submit(),
            f"Start({id_})": ev.Start(),
            f"Finish({id_})": ev.Finish(),
            f"Exception({id_})": ev.JobException("cancel", 0),
            f"ExecRelease({id_})": ev.Release(ALL_RANKS, True),
            f"Free({id_})": ev.Free(),
            f"Clean({id_})": ev.Clean(),
        }
        for text, part in parts.items():
            events[f"Alloc({id_}, {text})"] = ev.Alloc(part)
            events[f"PartialFree({id_}, {text})"] = ev.PartialFree(part)
            inputs[f"Complete({id_}, {text})"] = [Completed(id_, part)]
        for name in names:
            events[f'EpilogFinish({id_}, "{name}")'] = ev.EpilogFinish(name)
            events[f'EpilogStart({id_}, "{name}", Job({id_})!All)'] = ev.EpilogStart(name)
            for text, part in parts.items():
                events[f'EpilogStart({id_}, "{name}", {text})'] = ev.EpilogStart(name, part)
                events[f'Release({id_}, "{name}", {text})'] = ev.Release(part, False, name)
        inputs[f"Expire({id_})"] = [TimerExpired(id_)]
        inputs.update({text: [JobEvent(id_, event)] for text, event in events.items()})
    return inputs
