"""Instances in random runs, with reloads and restarts at any point: every rule of the specification after every step.

The rejected designs are planted one at a time, and the machine finds the rule that each breaks.
"""

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

import pytest
from attrs import evolve
from hypothesis import Phase as Generate
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from partialrelease import (
    NO_RANKS,
    Alloc,
    Clean,
    EpilogFinish,
    EpilogStart,
    Event,
    Exec,
    Finish,
    Free,
    HelloResponse,
    Housekeeping,
    IdSet,
    Instance,
    JobEvent,
    JobException,
    LastRank,
    Phase,
    PrologFinish,
    PrologStart,
    Release,
    Restart,
    RunHousekeeping,
    SchedFree,
    SchedulerReload,
    Settings,
    Start,
    Submit,
    Timer,
    TimerExpired,
    broken_instance_rules,
    rebuild,
)
from partialrelease import housekeeping as housekeepings
from partialrelease import instance as instances
from partialrelease.instance import Completed, Input, Member

JOBS = range(1, 200)  # of which three are active at a time
PIECES = tuple(map(IdSet, ("0", "1", "2-9", "10-2999", "3000-9999")))  # what the sets of ranks are made of
RANKS = reduce(IdSet.__or__, PIECES)
FINAL = Release(final=True)
SINGLE = (
    FINAL,
    EpilogFinish("e"),
    EpilogFinish("f"),
    PrologStart("p"),
    PrologFinish("p"),
    Start(),
    Finish(),
    Free(),
    Clean(),
)
ALL_JOBS = frozenset(JOBS)
ODD_JOBS = frozenset(JOBS[::2])


def some(ranks: IdSet) -> st.SearchStrategy[IdSet]:
    """Some of ``ranks``, or none where there are none."""
    pieces = [piece & ranks for piece in PIECES if piece & ranks]
    if not pieces:
        return st.just(NO_RANKS)
    return st.sets(st.sampled_from(pieces), min_size=1).map(lambda chosen: reduce(IdSet.__or__, chosen))


def made_safe(chosen: Settings) -> Settings:
    """What the specification rules out is giving the off-node part back early, or never."""
    unsafe = chosen.last_rank is LastRank.WITH_LAST or (chosen.last_rank is LastRank.DEFER and chosen.fluxion)
    return evolve(chosen, has_off_node=frozenset()) if unsafe else chosen


ANY_SETTINGS = st.builds(
    Settings,
    last_rank=st.sampled_from(LastRank),
    release_after=st.sampled_from([None, 0, 60.0]),
    partial_ok=st.sampled_from([True, True, False]),
    fluxion=st.booleans(),
    has_off_node=st.sampled_from([ODD_JOBS, ALL_JOBS, frozenset()]),
)


SAFE = ANY_SETTINGS.map(made_safe)


class Instances(RuleBasedStateMachine):
    """An instance in a random run. ``logs`` are the eventlogs of its jobs."""

    choices: st.SearchStrategy[Settings] = SAFE
    watched: str | None = None  # the only rule that is looked at, under a planted fault

    def __init__(self) -> None:
        super().__init__()
        self.instance = Instance()
        self.logs: dict[int, list[Event]] = {}
        self.news = False  # something has happened since the last reload or restart
        self.eager = False  # the job manager posts what it decides at once

    @initialize(data=st.data(), eager=st.booleans())
    def begin(self, data: st.DataObject, eager: bool) -> None:
        self.instance = Instance(data.draw(self.choices))
        self.eager = eager

    def step(self, input_: Input) -> None:
        before = self.instance
        self.instance, outputs = before.apply(input_)
        if isinstance(input_, JobEvent):
            self.logs.setdefault(input_.job, []).append(input_.event)
        self.check(before, input_)
        for output in outputs:
            if isinstance(output, RunHousekeeping):
                assert output.ranks
                assert output.ranks <= self.instance.members[output.job].housekeeping.running
            if isinstance(output, SchedFree):
                assert output.final is self.instance.members[output.job].housekeeping.final

    def check(self, before: Instance, input_: Input) -> None:
        self.news = not isinstance(input_, SchedulerReload | Restart)
        broken = broken_instance_rules(before, input_, self.instance)
        if self.watched is None:
            assert not broken
        assert self.watched not in broken, self.watched

    def event(self, job: int, event: Event) -> None:
        """The event, if it may happen; else it changes nothing."""
        input_ = JobEvent(job, event)
        refused = self.instance.guard(input_)
        if refused is None:
            self.step(input_)
        else:
            with pytest.raises(type(refused)):
                self.instance.apply(input_)

    def decided(self) -> None:
        while self.eager and (decided := self.instance.decide()):
            for each in decided:
                self.step(each)

    # -- what may happen --

    @rule(data=st.data())
    def happen(self, data: st.DataObject) -> None:
        """Anything that may happen now. (One rule, so that every run has something of everything.)"""
        what, where = data.draw(st.sampled_from(self.possible()))
        what(data.draw(st.sampled_from(where)), data)
        self.decided()

    def possible(self) -> list[tuple[Callable[[int, st.DataObject], object], list[int]]]:
        """What may happen, and to which jobs."""
        everything = [
            (self.grant, self.waiting()),
            (self.end, self.which(lambda member: member.job.exec in (Exec.REQUESTED, Exec.RUNNING))),
            (self.single, self.which(lambda member: member.job.phase is not Phase.INACTIVE)),
            (self.cancel, self.which(lambda member: member.job.phase is Phase.RUN)),
            (self.start_epilog, self.which(lambda member: member.job.phase is Phase.CLEANUP)),
            (self.drop, self.which(lambda member: member.job.allocation and any(h.ranks for h in member.job.actions))),
            (self.decide, [each.job for each in self.instance.decide()]),
            (self.complete, self.which(lambda member: member.housekeeping.running)),
            (self.expire, self.which(lambda member: member.housekeeping.timer is Timer.ON)),
            (self.reload, [0] if self.news else []),
            (self.restart, [0] if self.news else []),
        ]
        return [(what, jobs) for what, jobs in everything if jobs]

    def which(self, wanted: Callable[[Member], Any]) -> list[int]:
        return [job for job, member in self.instance.members.items() if wanted(member)]

    def free(self) -> IdSet:
        return RANKS - self.instance.scheduler.all_allocated

    def waiting(self) -> list[int]:
        """The jobs that may be granted ranks."""
        active = self.which(lambda member: member.job.phase is not Phase.INACTIVE)
        jobs = active if len(active) == 3 else [*active, JOBS[len(self.instance.members)]]
        return [job for job in jobs if not self.instance.member(job).job.allocation] if self.free() else []

    def grant(self, job: int, data: st.DataObject) -> None:
        """Mostly ranks that are free; others are refused, but where the scheduler is not asked."""
        self.event(job, Submit())
        free, bypass = data.draw(st.sampled_from([(True, None)] * 8 + [(False, None), (False, True)]))
        self.event(job, Alloc(data.draw(some(self.free() if free else RANKS)), bypass=bypass))

    def end(self, job: int, data: st.DataObject) -> None:
        """The job runs, and at its end an epilog starts."""
        self.event(job, Start())
        self.event(job, Finish())
        self.event(job, EpilogStart("e", data.draw(st.none() | some(self.instance.members[job].job.held))))
        if data.draw(st.integers(0, 3)):
            self.event(job, FINAL)

    def single(self, job: int, data: st.DataObject) -> None:
        legal = [event for event in SINGLE if self.instance.guard(JobEvent(job, event)) is None]
        self.event(job, data.draw(st.sampled_from(legal or SINGLE)))

    def cancel(self, job: int, data: st.DataObject) -> None:
        self.event(job, JobException(data.draw(st.sampled_from(["cancel", "scheduler-restart"])), 0))

    def start_epilog(self, job: int, data: st.DataObject) -> None:
        self.event(job, EpilogStart("f", data.draw(st.just(NO_RANKS) | some(self.instance.members[job].job.held))))

    def drop(self, job: int, data: st.DataObject) -> None:
        holder = data.draw(st.sampled_from([each for each in self.instance.members[job].job.actions if each.ranks]))
        self.event(job, Release(data.draw(some(holder.ranks)), False, holder.description))

    def decide(self, job: int, data: st.DataObject) -> None:
        self.step(next(each for each in self.instance.decide() if each.job == job))

    def complete(self, job: int, data: st.DataObject) -> None:
        ranks = data.draw(some(self.instance.members[job].housekeeping.running))
        failed = ranks & data.draw(some(RANKS))
        self.step(Completed(job, ranks, failed))
        assert failed <= self.instance.members[job].housekeeping.failed

    def expire(self, job: int, data: st.DataObject) -> None:
        self.step(TimerExpired(job))

    def reload(self, job: int, data: st.DataObject) -> None:
        self.step(SchedulerReload())

    def restart(self, job: int, data: st.DataObject) -> None:
        """The live instance after a restart is the one that the logs alone tell of (ReplayIsState)."""
        live, before = self.instance.apply(Restart())[0], self.instance
        self.instance = rebuild(self.logs, before.settings)
        self.check(before, Restart())
        if self.watched is None:
            assert self.instance == live
            for job_, member in live.members.items():
                assert member.job == before.members[job_].job

    # -- in the end --

    def teardown(self) -> None:
        """Once every holder finishes and every script completes, every rank and off-node part is free."""
        if self.watched is not None:
            return
        for job in tuple(self.instance.members):
            self.event(job, PrologFinish("p"))
            self.event(job, JobException("cancel", 0))
            self.event(job, Finish())
            self.event(job, FINAL)
            for name in "ef":
                self.event(job, EpilogFinish(name))
        self.eager = True
        self.decided()
        for job, member in self.instance.members.items():
            if running := member.housekeeping.running:
                self.step(Completed(job, running))
        assert not self.instance.scheduler.allocated
        assert not self.instance.scheduler.off_node
        assert not self.instance.decide()
        for member in self.instance.members.values():
            assert member.job.phase is Phase.INACTIVE
            assert member.bypass or member.job.lost | member.housekeeping.freed == member.job.allocation


TestInstances = Instances.TestCase


# -- the rejected designs, each planted in a machine that looks at one rule alone --


def is_found(breaks: str, choices: st.SearchStrategy[Settings]) -> None:
    """A machine with these settings, in the default number of examples, finds that this rule is broken."""

    class Planted(Instances):
        pass

    Planted.choices = choices
    Planted.watched = breaks
    with pytest.raises(AssertionError, match=f"^{breaks}"):
        run_state_machine_as_test(Planted, settings=hypothesis_settings(phases=[Generate.generate]))


@pytest.mark.requirement("PR-29")
@pytest.mark.slow
def test_defer_on_fluxion() -> None:
    """With the last rank Fluxion forgets the job, and its off-node part is allocated for good."""
    is_found(
        "OffNodeFreed",
        st.builds(Settings, st.just(LastRank.DEFER), st.just(0), fluxion=st.just(True), has_off_node=st.just(ALL_JOBS)),
    )


@pytest.mark.requirement("PR-30")
@pytest.mark.slow
def test_with_last_off_node() -> None:
    """The last rank takes the off-node part along, while an epilog still uses it."""
    is_found("OffNodeHeld", st.builds(Settings, st.just(LastRank.WITH_LAST), has_off_node=st.just(ALL_JOBS)))


@pytest.mark.requirement("PR-40")
@pytest.mark.slow
def test_books_count_whole_r(monkeypatch: pytest.MonkeyPatch) -> None:
    """The job manager counts an active job's whole R, also what has gone back."""

    def books(self: Member) -> IdSet:
        return self.job.allocation if self.job.phase is not Phase.INACTIVE else held_or_in_housekeeping(self)

    held_or_in_housekeeping = Member.__dict__["books"].fget
    monkeypatch.setattr(Member, "books", property(books))
    is_found("AccountedOnce", SAFE)


@pytest.mark.requirement("PR-38")
@pytest.mark.slow
def test_hello_frees_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a reload, what was handed over is called free while housekeeping still runs."""
    monkeypatch.setattr(instances, "free_in_hello", lambda member: member.job.released)
    is_found("ReferencedIsAllocated", SAFE)


@pytest.mark.requirement("PR-37")
@pytest.mark.slow
def test_two_hellos(monkeypatch: pytest.MonkeyPatch) -> None:
    """One response for the active job and one for its housekeeping: the later replaces the earlier."""

    def hello(members: dict[int, Member]) -> tuple[HelloResponse, ...]:
        told = {id_: each for id_, each in members.items() if each.job.allocation and not each.bypass}
        active = [(id_, each, each.job.held) for id_, each in told.items() if not each.job.closed]
        cleaned = [(id_, each, each.housekeeping.running | each.housekeeping.done) for id_, each in told.items()]
        return tuple(
            HelloResponse(id_, each.job.allocation, each.job.allocation - ranks)
            for id_, each, ranks in active + [found for found in cleaned if found[2]]
        )

    monkeypatch.setattr(instances, "hello", hello)
    is_found("ReferencedIsAllocated", SAFE)


@pytest.mark.requirement("PR-47")
@pytest.mark.slow
def test_old_manager(monkeypatch: pytest.MonkeyPatch) -> None:
    """An older job manager skips `partial-free` when it restarts, and its hello names ranks of another job."""

    def skipping(log: Iterable[Event], settings: Settings) -> Member:
        return replay([event for event in log if event.name != "partial-free"], settings)

    replay = instances.replay
    monkeypatch.setattr(instances, "replay", skipping)
    is_found("NoDoubleBooking", st.builds(Settings, st.sampled_from(LastRank), st.just(0)))


@pytest.mark.requirement("PR-39")
@pytest.mark.slow
def test_no_partial_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    """Early release with a scheduler that cannot be told of it: after a reload it has the whole R again."""
    monkeypatch.setattr(instances, "early_release", lambda settings: True)
    is_found("NoDoubleBooking", st.builds(Settings, release_after=st.just(0), partial_ok=st.just(False)))


@pytest.mark.requirement("PR-31")
@pytest.mark.slow
def test_free_at_hand_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is handed over goes to the scheduler at once, while housekeeping still runs."""

    def due(housekeeping: Housekeeping, release_after: float | None) -> tuple[IdSet, bool]:
        ranks, final = at_the_right_time(housekeeping, release_after)
        return ranks | housekeeping.running, final

    at_the_right_time = housekeepings.due
    monkeypatch.setattr(housekeepings, "due", due)
    is_found("FreeAfterHousekeeping", SAFE)
