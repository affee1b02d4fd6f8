"""The rules hold in every state and of every step of one job, and each is broken by a fault that it is about."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from attrs import evolve

import partialrelease
from partialrelease import (
    NO_RANKS,
    STATE_RULES,
    STEP_RULES,
    Alloc,
    Clean,
    EarlyRelease,
    EpilogFinish,
    EpilogStart,
    Event,
    EventuallyClean,
    Finish,
    Free,
    Job,
    JobException,
    PartialFree,
    QueuedEpilogSeesAll,
    Release,
    ReplayIsState,
    Start,
    Submit,
    broken_rules,
    decide,
    effect,
    guard,
)
from partialrelease.idset import IdSet
from partialrelease.job import LastRank
from partialrelease.state_graph import Machine, one_job
from partialrelease.tlc import run, spec_folder

OF_ONE_JOB = {
    "NoReleaseWhileReferenced",
    "ReleaseGate",
    "ReferencesAreHeld",
    "ReleasedOnce",
    "FinalIsLast",
    "CleanIsLast",
    "ReferencesShrink",
    "QueuedEpilogSeesAll",
    "ReplayIsState",
    "EarlyRelease",
    "EventuallyClean",
}

Step = Callable[[Job, Event], Job | None]


@pytest.mark.parametrize("rule", sorted(OF_ONE_JOB))
def test_each_rule_of_one_job_has_its_name_in_the_spec_and_in_the_code(rule: str) -> None:
    spec = "".join(path.read_text() for path in spec_folder().glob("*.tla"))
    assert re.search(rf"(?m)^{rule} ==", spec)
    checked = "".join(path.read_text() for path in spec_folder().glob("*.cfg"))
    assert re.search(rf"(?m)^\s+{rule}$", checked)
    assert getattr(partialrelease, rule).__name__ == rule
    assert getattr(partialrelease, rule).__doc__


def test_the_rules_by_their_names() -> None:
    assert STATE_RULES.keys() | STEP_RULES.keys() | {"ReplayIsState"} == OF_ONE_JOB


def walk(machine: Machine[Job, Event], step: Step | None = None) -> Iterator[tuple[Job, Event, Job, list[Event]]]:
    """Each step of the machine: a job, an event, the job then; and the log of the first way to that job.

    Of jobs that differ in the order of their actions alone one is gone on from.
    """
    logs: dict[Job, list[Event]] = {machine.first: []}
    states = set()
    for before in (todo := [machine.first]):
        for same in machine.events.values():
            for event in same:
                after = (step or machine.step)(before, event)
                if after is not None:
                    if after not in logs:
                        logs[after] = [*logs[before], event]
                        if (state := (*machine.values(after).values(),)) not in states:
                            states.add(state)
                            todo.append(after)
                    yield before, event, after, logs[after]


@pytest.mark.parametrize("last_rank", ["defer", "with-last"])
def test_the_rules_hold_at_small_bounds(last_rank: str) -> None:
    hold_everywhere(one_job(2, 1, 1, LastRank(last_rank)))


@pytest.mark.requirement("PR-05", "PR-09", "PR-10", "PR-12", "PR-13", "PR-14", "PR-15", "PR-16")
@pytest.mark.slow
def test_the_rules_hold_in_every_state_and_of_every_step() -> None:
    assert hold_everywhere(one_job(3, 2, 1)) > 170353  # transitions; here an event may be had in several ways


def hold_everywhere(machine: Machine[Job, Event]) -> int:
    seen: set[Job] = set()
    steps = 0
    for before, event, after, log in walk(machine):
        broken = [name for name, rule in STEP_RULES.items() if not rule(before, event, after)]
        if after not in seen:
            seen.add(after)
            broken += [name for name, rule in STATE_RULES.items() if not rule(after)]
            assert ReplayIsState(log, after)
        assert not broken, (before, event, after)
        steps += 1
    print(f"{len(seen)} states, {steps} steps")
    return steps


def unguarded(kind: type[Event]) -> Step:
    return lambda job, event: effect(job, event) if isinstance(event, kind) or guard(job, event) is None else None


def afterwards(kind: type[Event], change: Callable[[Job, Job], Job]) -> Step:
    """With another effect of the events of a kind."""

    def step(job: Job, event: Event) -> Job | None:
        if guard(job, event) is not None:
            return None
        after = effect(job, event)
        return change(job, after) if isinstance(event, kind) else after

    return step


def last_references(ranks: IdSet, job: Job) -> Job:
    return evolve(job, actions=(*job.actions[:-1], evolve(job.actions[-1], ranks=ranks))) if job.actions else job


FAULTS: list[tuple[str, str, Step]] = [
    ("NoReleaseWhileReferenced", "partial-free needs no reference to be gone", unguarded(PartialFree)),
    ("NoReleaseWhileReferenced", "free needs no reference to be gone", unguarded(Free)),
    ("ReleaseGate", "partial-free at any time", unguarded(PartialFree)),
    ("ReleaseGate", "free at any time", unguarded(Free)),
    (
        "ReferencesAreHeld",
        "an epilog references all that was allocated",
        afterwards(EpilogStart, lambda job, after: last_references(after.allocation, after)),
    ),
    (
        "ReleasedOnce",
        "partial-free leaves the job its ranks",
        afterwards(PartialFree, lambda job, after: evolve(after, held=job.held)),
    ),
    ("ReleasedOnce", "free forgets", afterwards(Free, lambda job, after: evolve(after, released=job.held))),
    ("FinalIsLast", "free while holders are active", unguarded(Free)),
    ("FinalIsLast", "free leaves the job its ranks", afterwards(Free, lambda job, after: evolve(after, held=job.held))),
    ("FinalIsLast", "a second free", afterwards(Free, lambda job, after: evolve(after, closed=False))),
    ("CleanIsLast", "clean at any time", unguarded(Clean)),
    (
        "ReferencesShrink",
        "a release grows",
        afterwards(Release, lambda job, after: last_references(after.allocation, after)),
    ),
    ("ReferencesShrink", "a start grows", afterwards(Start, lambda job, after: evolve(after, exec_ranks=after.held))),
]


@pytest.mark.requirement("PR-09", "PR-10", "PR-12", "PR-13", "PR-14", "PR-15", "PR-16")
@pytest.mark.parametrize(("rule", "fault", "step"), FAULTS, ids=[f"{rule}-{fault}" for rule, fault, _ in FAULTS])
def test_each_rule_is_broken_by_a_fault(rule: str, fault: str, step: Step) -> None:
    machine = one_job(2, 1, 1)
    assert any(rule in broken_rules(before, event, after) for before, event, after, _ in walk(machine, step))


def posts_only(*kinds: type[Event]) -> Callable[[Job, Sequence[Event]], Event | None]:
    def decides(job: Job, queued: Sequence[Event]) -> Event | None:
        event = decide(job, queued)
        return event if isinstance(event, kinds) else None

    return decides


def reached(*events: Event) -> Job:
    job = Job()
    for event in events:
        assert guard(job, event) is None
        job = effect(job, event)
    return job


R = IdSet("0-3")
EXCEPTION = JobException("cancel", 0)
RUNNING = (Submit(), Alloc(R), Start())
DONE = (*RUNNING, Finish(), Release(final=True))


@pytest.mark.requirement("PR-19")
def test_a_job_manager_that_hands_nothing_over_before_the_end() -> None:
    job = reached(*DONE, EpilogStart("a", IdSet("0")))
    assert EarlyRelease(job)
    assert not EarlyRelease(job, posts_only(Free, Clean))
    kept = reached(*DONE, EpilogStart("a", NO_RANKS), PartialFree(IdSet("1-3")))
    assert EarlyRelease(kept, posts_only(Free, Clean))
    assert not EarlyRelease(evolve(kept, last_rank=LastRank.DEFER), posts_only(Free, Clean))


@pytest.mark.requirement("PR-20")
def test_a_job_manager_that_does_not_come_to_an_end() -> None:
    job = reached(*DONE, EpilogStart("a", IdSet("0")))
    assert EventuallyClean(job)
    assert EventuallyClean(job, posts_only(Free, Clean))
    assert not EventuallyClean(job, posts_only(Free, PartialFree))
    assert not EventuallyClean(job, posts_only(Clean, PartialFree))
    assert EventuallyClean(reached(Submit()), posts_only())


@pytest.mark.requirement("PR-18")
def test_a_job_manager_that_decides_while_an_epilog_start_is_queued() -> None:
    before = reached(*RUNNING, Release())
    after = effect(before, Finish())
    assert QueuedEpilogSeesAll(before, Finish(), after)
    assert not QueuedEpilogSeesAll(before, Finish(), after, lambda job, queued: decide(job))
    asked = reached(*RUNNING[:2], EXCEPTION)
    assert not QueuedEpilogSeesAll(
        asked, Release(final=True), effect(asked, Release(final=True)), lambda job, queued: decide(job)
    )


@pytest.mark.requirement("PR-05")
def test_a_hand_over_that_is_not_in_the_log() -> None:
    log = [*DONE, EpilogStart("a", IdSet("0"))]
    job = reached(*log)
    assert ReplayIsState(log, job)
    assert not ReplayIsState(log, effect(job, PartialFree(IdSet("1"))))
    assert not ReplayIsState([*log, EpilogFinish("a")], job)


@pytest.mark.slow
def test_in_the_spec_too_a_replay_is_the_state_and_an_outcome_left_open_breaks_that(tmp_path: Path) -> None:
    config = spec_folder() / "Replay-keep.cfg"
    found = run(spec_folder() / "Replay.tla", config, options=["-deadlock"])
    assert (found.violated, found.distinct) == (None, 374)
    spec = (spec_folder() / "PartialRelease.tla").read_text()
    assert spec.count("  /\\ held' = held \\ ranks\n") == 1
    vague = spec.replace("  /\\ held' = held \\ ranks\n", "  /\\ held' \\in {held, held \\ ranks}\n")
    (tmp_path / "PartialRelease.tla").write_text(vague)
    for file in (config, spec_folder() / "Replay.tla"):
        (tmp_path / file.name).write_text(file.read_text())
    assert run(tmp_path / "Replay.tla", tmp_path / config.name, options=["-deadlock"]).violated == "ReplayIsState"
