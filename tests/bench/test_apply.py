"""``apply`` against state machine libraries, and against itself on more ranks.

The other machine does the least: it knows the job's phase and nothing else. It has no callback and no guard, its
transitions are those that the logs take, and where the phase stays the transition is internal. So that nothing has to
be reset between two jobs, a job of its own starts where the last one ended.
"""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace, new_class
from typing import Any, Final

import pytest

from partialrelease import IdSet, Job, Phase, apply, find_r, read_log, read_r
from partialrelease import events as ev

from .conftest import Bench

_DATA: Final = Path(__file__).parent.parent / "data"
_LOGS = ("plain", "one-epilog", "A-proposed", "late-epilog", "ranks-keys", "cancel-running", "C-perilog", "J-updates")
_ALL: Final = ("these eight", "the journal, job by job")  # what targets are for
_BORN: Final = Job()

Jobs = list[list[ev.Event]]
Moves = dict[tuple[str, str], str]  # (phase, trigger) -> phase


@cache
def recorded() -> dict[str, Jobs]:
    """The events of the logs, job by job."""
    logs: dict[str, Jobs] = {}
    for name in _LOGS:
        path = str(_DATA / "eventlogs" / f"{name}.eventlog")
        r = find_r(path)
        logs[name] = [[entry.event for entry in read_log(path, resources=read_r(r) if r else None)]]
    logs[_ALL[0]] = [job for jobs in logs.values() for job in jobs]
    jobs: dict[int | None, list[ev.Event]] = {}
    for entry in read_log(str(_DATA / "journal-1024-ranks.ndjson")):
        jobs.setdefault(entry.job, []).append(entry.event)
    logs[_ALL[1]] = list(jobs.values())
    return logs


def steps(jobs: Jobs) -> list[tuple[str, str, str]]:
    """What the events do to the phase: (phase, trigger, phase after)."""
    taken = []
    for events in jobs:
        job = _BORN
        for event in events:
            before, job = job, apply(job, event)
            phase = Phase.INACTIVE if before is _BORN else before.phase
            taken.append((phase.name, f"do_{event.name.replace('-', '_')}", job.phase.name))
    return taken


def make_transitions(moves: Moves) -> Any:
    library = pytest.importorskip("transitions", reason="transitions is not installed")
    model = SimpleNamespace()
    machine = library.Machine(model, sorted(set(moves.values())), initial="INACTIVE", auto_transitions=False)
    for (source, trigger), dest in moves.items():
        machine.add_transition(trigger, source, dest if dest != source else None)  # None: internal
    return model


def make_statemachine(moves: Moves) -> Any:
    library = pytest.importorskip("statemachine", reason="python-statemachine is not installed")
    states = {phase: library.State(initial=phase == "INACTIVE") for phase in sorted(set(moves.values()))}
    events: dict[str, Any] = {}
    for (source, trigger), dest in moves.items():
        move = states[source].to(states[dest], internal=dest == source)
        events[trigger] = events[trigger] | move if trigger in events else move
    return new_class("Least", (library.StateMachine,), {}, lambda body: body.update({**states, **events}))()


_LIBRARIES: Final = {
    "transitions": (make_transitions, "state", 4),
    "python-statemachine": (make_statemachine, "current_state_value", 30),
}


def replay(jobs: Jobs) -> None:
    for events in jobs:
        job = _BORN
        for event in events:
            job = apply(job, event)


def replay_theirs(machine: Any, triggers: list[str]) -> None:
    for trigger in triggers:
        getattr(machine, trigger)()


@pytest.mark.parametrize("library", _LIBRARIES)
@pytest.mark.parametrize("log", [*_LOGS, *_ALL])
def test_libraries(bench: Bench, log: str, library: str) -> None:
    make, state, least = _LIBRARIES[library]
    machine = make({(phase, trigger): after for jobs in recorded().values() for phase, trigger, after in steps(jobs)})
    jobs = recorded()[log]
    taken = steps(jobs)
    for _, trigger, after in taken:
        getattr(machine, trigger)()
        assert getattr(machine, state) == after
    theirs = partial(replay_theirs, machine, [trigger for _, trigger, _ in taken])
    what = f"an event of {log}: apply, {library}"
    bench.faster(what, partial(replay, jobs), theirs, least if log in _ALL else None, per=len(taken))


def epilog_log(ranks: int) -> list[ev.Event]:
    """A job with an epilog on all ranks, which gives up half of them first."""
    half = IdSet(f"0-{ranks // 2 - 1}")
    before = [ev.Submit(), ev.Validate(), ev.Depend(), ev.Priority(), ev.Alloc(IdSet(f"0-{ranks - 1}")), ev.Start()]
    epilog = [ev.EpilogStart("a"), ev.Release(final=True), ev.Release(half, description="a"), ev.PartialFree(half)]
    return [*before, ev.Finish(), *epilog, ev.EpilogFinish("a"), ev.Free(), ev.Clean()]


@pytest.mark.parametrize("ranks", [4096, 1 << 20])
def test_ranks(bench: Bench, ranks: int) -> None:
    many, few = epilog_log(ranks), epilog_log(16)
    what = f"an event of a job on {ranks:,} ranks, on 16"
    bench.slower(what, partial(replay, [many]), partial(replay, [few]), 2, per=len(many))
