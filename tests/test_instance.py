"""The instance: the way of a rank round, by example; each policy, each setting, reload and restart."""

import re
from functools import reduce
from pathlib import Path

import pytest

from partialrelease import (
    INSTANCE_STATE_RULES,
    INSTANCE_STEP_RULES,
    NO_RANKS,
    Alloc,
    Clean,
    Code,
    Completed,
    EpilogFinish,
    EpilogStart,
    Event,
    Finish,
    Free,
    Hello,
    HelloResponse,
    Housekeeping,
    IdSet,
    Input,
    Instance,
    InstanceCode,
    InstanceError,
    Job,
    JobEvent,
    JobException,
    LastRank,
    Member,
    Output,
    PartialFree,
    Phase,
    ProtocolViolation,
    Release,
    Restart,
    RunHousekeeping,
    SchedFree,
    Scheduler,
    SchedulerReload,
    Settings,
    Start,
    StartTimer,
    Submit,
    Timer,
    TimerExpired,
    Unknown,
    apply,
    broken_instance_rules,
    rebuild,
)

R = IdSet("0-3")
FINAL = Release(final=True)
CANCEL = JobException("cancel", 0)
SCHEDULER_RESTART = JobException("scheduler-restart", 0)
RABBIT = frozenset({1})  # the jobs that have rabbit storage, a resource off the nodes

# A job of ranks 0-3 whose epilog holds ranks 1 and 3 still.
UNMOUNTING = (Submit(), Alloc(R), Start(), Finish(), EpilogStart("e"), FINAL, Release(IdSet("0,2"), False, "e"))
# A job of ranks 0-3 whose epilog moves data off the rabbits, and holds no rank.
MOVING = (Submit(), Alloc(R), Start(), Finish(), EpilogStart("e", NO_RANKS), FINAL)


def ran(instance: Instance, *inputs: Input) -> Instance:
    """The instance after these inputs; no rule is broken on the way."""
    for input_ in inputs:
        after, _ = instance.apply(input_)
        assert broken_instance_rules(instance, input_, after) == []
        instance = after
    return instance


def job(*events: Event, id_: int = 1) -> tuple[JobEvent, ...]:
    return tuple(JobEvent(id_, event) for event in events)


def instance(*events: Event, **settings: object) -> Instance:
    return ran(Instance(Settings(**settings)), *job(*events))  # type: ignore[arg-type]


def outputs(state: Instance, *inputs: Input) -> list[Output]:
    """All that is to be done after these inputs."""
    found: list[Output] = []
    for input_ in inputs:
        found += state.apply(input_)[1]
        state = ran(state, input_)
    return found


def refused(state: Instance, input_: Input) -> ProtocolViolation | InstanceError:
    found = state.guard(input_)
    assert found is not None
    with pytest.raises(type(found)) as raised:
        state.apply(input_)
    assert str(raised.value) == str(found)
    return found


# -- the way round --


@pytest.mark.requirement("PR-31", "PR-34")
def test_a_rank_goes_round() -> None:
    state = instance(*UNMOUNTING, release_after=0)
    assert state.scheduler.allocated == {1: R}
    (decided,) = state.decide()
    assert decided == JobEvent(1, PartialFree(IdSet("0,2")))
    assert outputs(state, decided) == [RunHousekeeping(1, IdSet("0,2"))]
    state = ran(state, decided)
    assert state.scheduler.allocated == {1: R}  # housekeeping is not done
    done = Completed(1, IdSet("2"))
    assert outputs(state, done) == [SchedFree(1, IdSet("2"), False)]
    state = ran(state, done, *job(Submit(), Alloc(IdSet("2,7")), id_=2))  # and it has the next job
    assert state.scheduler.allocated == {1: IdSet("0-1,3"), 2: IdSet("2,7")}


@pytest.mark.requirement("PR-34")
def test_the_job_is_inactive_before_its_housekeeping_is_done() -> None:
    state = ran(instance(*UNMOUNTING), *job(EpilogFinish("e")))
    assert state.decide() == job(Free())
    assert outputs(state, *job(Free())) == [RunHousekeeping(1, R)]
    state = ran(state, *job(Free(), Clean()))
    assert state.members[1].job.phase is Phase.INACTIVE
    assert state.scheduler.allocated == {1: R}
    assert outputs(state, Completed(1, IdSet("0-2")), Completed(1, IdSet("3"))) == [SchedFree(1, R, True)]


def test_a_job_that_was_never_allocated() -> None:
    state = instance(Submit(), CANCEL)
    assert state.decide() == job(Clean())
    state = ran(state, *job(Clean()))
    assert state.decide() == ()
    assert state.scheduler == Scheduler()


@pytest.mark.requirement("PR-31")
def test_ranks_that_fail_go_back() -> None:
    state = ran(instance(*UNMOUNTING, release_after=0), *job(PartialFree(IdSet("0,2"))))
    done = Completed(1, IdSet("0,2"), failed=IdSet("2"))
    assert outputs(state, done) == [SchedFree(1, IdSet("0,2"), False)]
    assert ran(state, done).members[1].housekeeping.failed == IdSet("2")


# -- release_after --


LAST = SchedFree(1, IdSet("1,3"), True)


@pytest.mark.requirement("PR-32")
@pytest.mark.parametrize(
    ("release_after", "expected"),
    [
        (None, [[], [], [], [SchedFree(1, R, True)]]),
        (0, [[SchedFree(1, IdSet("0"), False)], [SchedFree(1, IdSet("2"), False)], [], [LAST]]),
        (60.0, [[StartTimer(1, 60.0)], [], [SchedFree(1, IdSet("0,2"), False)], [LAST]]),
    ],
)
def test_policies(release_after: float | None, expected: list[list[Output]]) -> None:
    state = ran(instance(*UNMOUNTING, release_after=release_after), *job(PartialFree(IdSet("0,2"))))
    found = [outputs(state, Completed(1, IdSet("0")))]
    state = ran(state, Completed(1, IdSet("0")))
    found.append(outputs(state, Completed(1, IdSet("2"))))
    state = ran(state, Completed(1, IdSet("2")))
    expires = [TimerExpired(1)] if release_after else []
    found.append(outputs(state, *expires))
    state = ran(state, *expires, *job(EpilogFinish("e"), Free()))
    found.append(outputs(state, Completed(1, IdSet("1,3"))))
    assert found == expected


@pytest.mark.requirement("PR-32")
def test_a_timer_that_would_start_with_the_last_rank_does_not() -> None:
    state = ran(instance(*UNMOUNTING, release_after=60.0), *job(EpilogFinish("e"), Free()))
    assert outputs(state, Completed(1, R)) == [SchedFree(1, R, True)]
    after = ran(state, Completed(1, R))
    assert after.members[1].housekeeping.timer is Timer.OFF
    assert refused(after, TimerExpired(1)).code is InstanceCode.TimerOff


def test_a_duration_is_not_negative() -> None:
    with pytest.raises(ValueError, match="release_after"):
        Settings(release_after=-1)


# -- last_rank --


@pytest.mark.requirement("PR-28")
def test_keep_lets_the_last_rank_stay() -> None:
    state = instance(*MOVING, release_after=0, fluxion=True, has_off_node=RABBIT)
    assert state.decide() == job(PartialFree(IdSet("1-3")))
    state = ran(state, *state.decide(), Completed(1, IdSet("1-3")))
    assert state.scheduler.allocated == {1: IdSet("0")}
    assert state.scheduler.off_node == {1}
    state = ran(state, *job(EpilogFinish("e"), Free(), Clean()))
    assert outputs(state, Completed(1, IdSet("0"))) == [SchedFree(1, IdSet("0"), True)]
    assert ran(state, Completed(1, IdSet("0"))).scheduler.off_node == frozenset()


@pytest.mark.requirement("PR-34", "PR-35")
def test_defer_sends_an_empty_final_fragment() -> None:
    state = instance(*MOVING, last_rank=LastRank.DEFER, release_after=0, has_off_node=RABBIT)
    assert state.decide() == job(PartialFree(R))
    state = ran(state, *state.decide(), Completed(1, R))
    assert state.scheduler.allocated == {1: NO_RANKS}
    assert state.scheduler.off_node == {1}
    assert outputs(state, *job(EpilogFinish("e"), Free())) == [SchedFree(1, NO_RANKS, True)]
    assert ran(state, *job(EpilogFinish("e"), Free())).scheduler == Scheduler(has_off_node=RABBIT)


@pytest.mark.requirement("PR-34")
def test_with_last_sends_final_with_the_last_rank() -> None:
    state = instance(*MOVING, last_rank=LastRank.WITH_LAST, release_after=0)
    state = ran(state, *state.decide())
    assert outputs(state, Completed(1, R)) == [SchedFree(1, R, True)]
    state = ran(state, Completed(1, R))
    assert state.members[1].job.phase is Phase.CLEANUP
    assert outputs(state, SchedulerReload()) == [Hello(())]
    assert outputs(state, *job(EpilogFinish("e"), Free(), Clean())) == []


@pytest.mark.requirement("PR-36")
def test_defer_on_fluxion_loses_the_off_node_part() -> None:
    """Seen on Fluxion 0.54."""
    state = instance(*MOVING, last_rank=LastRank.DEFER, release_after=0, fluxion=True, has_off_node=RABBIT)
    state = ran(state, *state.decide(), Completed(1, R), *job(EpilogFinish("e"), Free()))
    (clean,) = state.decide()
    after, _ = state.apply(clean)
    assert broken_instance_rules(state, clean, after) == ["OffNodeFreed"]
    assert ran(after, SchedulerReload()).scheduler.off_node == frozenset()  # until it is loaded anew


@pytest.mark.requirement("PR-36")
def test_with_last_gives_the_off_node_part_back_early() -> None:
    state = instance(*MOVING, last_rank=LastRank.WITH_LAST, release_after=0, has_off_node=RABBIT)
    state, done = ran(state, *state.decide()), Completed(1, R)
    assert broken_instance_rules(state, done, state.apply(done)[0]) == ["OffNodeHeld"]


# -- what is refused --


@pytest.mark.requirement("PR-22")
def test_what_a_job_refuses_the_instance_refuses() -> None:
    state = instance(*UNMOUNTING)
    found = refused(state, JobEvent(1, PartialFree(IdSet("1"))))
    assert isinstance(found, ProtocolViolation)
    assert found.code is Code.ReleasedWhileReferenced
    assert refused(state, JobEvent(2, Alloc(R))).code is Code.WrongPhase
    assert ran(state, *job(Unknown("debug.x"))) == state


@pytest.mark.requirement("PR-41")
def test_what_is_not_free_is_not_granted() -> None:
    state = ran(instance(*UNMOUNTING), *job(Submit(), id_=2))
    found = refused(state, JobEvent(2, Alloc(IdSet("3-4"))))
    assert found.code is InstanceCode.NotFree
    assert str(found).startswith("NotFree: job 2 is granted rank 3")


def test_housekeeping_completes_where_it_runs() -> None:
    state = instance(*UNMOUNTING)
    assert refused(state, Completed(1, IdSet("0"))).code is InstanceCode.NotRunning
    assert refused(state, Completed(7, IdSet("0"))).code is InstanceCode.NotRunning
    assert refused(state, TimerExpired(7)).code is InstanceCode.TimerOff
    state = ran(state, *job(PartialFree(IdSet("0,2"))))
    assert refused(state, Completed(1, IdSet("0"), failed=IdSet("2"))).code is InstanceCode.NotCompleted


@pytest.mark.requirement("PR-41")
def test_an_instance_that_contradicts_itself_is_refused() -> None:
    member = Member(reduce(apply, UNMOUNTING, Job()), Housekeeping(running=IdSet("0")))
    state = Instance(Settings(release_after=0), {1: member})
    with pytest.raises(InstanceError, match=r"^NotAllocated: "):
        state.apply(Completed(1, IdSet("0")))


# -- a scheduler without partial-ok --


@pytest.mark.requirement("PR-39")
def test_without_partial_ok_early_release_is_off() -> None:
    state = instance(*UNMOUNTING, release_after=0, partial_ok=False)
    assert state.decide() == ()
    found = refused(state, JobEvent(1, PartialFree(IdSet("0"))))
    assert (found.code, found.ranks) == (InstanceCode.NoPartialOk, IdSet("0"))
    assert str(found).startswith("NoPartialOk: job 1 gives rank 0 back early")
    state = ran(state, *job(EpilogFinish("e"), Free()))
    assert outputs(state, Completed(1, IdSet("0"))) == []  # as if release_after were not set
    state = ran(state, Completed(1, IdSet("0")), SchedulerReload())
    assert state.scheduler.allocated == {1: R}
    assert outputs(state, Completed(1, IdSet("1-3"))) == [SchedFree(1, R, True)]


@pytest.mark.requirement("PR-45")
def test_without_partial_ok_a_half_freed_job_cannot_come_back() -> None:
    log = [*UNMOUNTING, PartialFree(IdSet("0,2"))]
    with pytest.raises(InstanceError, match=r"^NoPartialOk: job 1 gives ranks 0,2 back early"):
        rebuild({1: log}, Settings(partial_ok=False))
    over = rebuild({1: [*log, EpilogFinish("e"), Free()]}, Settings(partial_ok=False))
    assert over.scheduler == Scheduler(partial_ok=False)


# -- reload and restart --


@pytest.mark.requirement("PR-37", "PR-38")
def test_reload_tells_what_housekeeping_has_given_back() -> None:
    state = ran(instance(*UNMOUNTING, release_after=0), *job(PartialFree(IdSet("0,2"))), Completed(1, IdSet("2")))
    assert outputs(state, SchedulerReload()) == [Hello((HelloResponse(1, R, IdSet("2")),))]
    assert ran(state, SchedulerReload()) == state


@pytest.mark.requirement("PR-43")
def test_after_a_restart_all_that_was_handed_over_is_free() -> None:
    state = ran(instance(*UNMOUNTING, release_after=60.0), *job(PartialFree(IdSet("0,2"))), Completed(1, IdSet("2")))
    assert outputs(state, Restart()) == [Hello((HelloResponse(1, R, IdSet("0,2")),))]
    after = ran(state, Restart())
    assert after.members[1] == Member(state.members[1].job, Housekeeping(freed=IdSet("0,2")))
    assert rebuild({1: [*UNMOUNTING, PartialFree(IdSet("0,2"))]}, state.settings) == after
    assert refused(after, Completed(1, IdSet("0"))).code is InstanceCode.NotRunning


@pytest.mark.requirement("PR-44")
def test_after_a_restart_a_job_that_was_freed_has_nothing() -> None:
    log = [*UNMOUNTING, EpilogFinish("e"), Free()]
    after = ran(instance(*log, has_off_node=RABBIT), Restart())
    assert after.scheduler == Scheduler(has_off_node=RABBIT)
    assert after.members[1].housekeeping == Housekeeping(freed=R, closing=True, final=True)
    assert after == rebuild({1: log}, after.settings)
    assert outputs(after, *job(Clean())) == []


@pytest.mark.requirement("PR-24")
def test_an_old_log_that_breaks_a_rule_does_not_come_back() -> None:
    with pytest.raises(ProtocolViolation, match=r"^ReleasedWhileReferenced"):
        rebuild({1: [*UNMOUNTING, Free()]}, Settings())


# -- a scheduler that drops jobs, and jobs that it never knew --


@pytest.mark.requirement("PR-22", "PR-37", "PR-44")
def test_a_job_that_the_scheduler_drops() -> None:
    state = instance(*UNMOUNTING, has_off_node=RABBIT)
    assert refused(state, JobEvent(1, SCHEDULER_RESTART)).code is Code.ResourcesLost
    state = ran(state, *job(PartialFree(IdSet("0,2")), EpilogFinish("e")))
    found = refused(state, JobEvent(1, SCHEDULER_RESTART))
    assert isinstance(found, ProtocolViolation)
    assert (found.code, found.event, found.ranks) == (Code.ResourcesLost, SCHEDULER_RESTART, IdSet("0,2"))
    assert str(found).endswith("took ranks 0,2 away, still in housekeeping")
    state = ran(state, Completed(1, IdSet("0,2")))
    assert outputs(state, *job(SCHEDULER_RESTART)) == []  # it is not told what it took
    state = ran(state, *job(SCHEDULER_RESTART))
    assert state.scheduler == Scheduler(has_off_node=RABBIT)
    assert outputs(state, *job(Clean())) == []
    assert outputs(state, SchedulerReload()) == outputs(state, Restart()) == [Hello(())]
    assert ran(state, *job(CANCEL, SCHEDULER_RESTART)) == state


@pytest.mark.requirement("PR-14")
def test_what_was_freed_the_scheduler_cannot_take_away() -> None:
    state = ran(instance(*UNMOUNTING), *job(EpilogFinish("e"), Free()))
    assert ran(state, *job(SCHEDULER_RESTART)) == state
    assert outputs(state, *job(SCHEDULER_RESTART), Completed(1, R)) == [SchedFree(1, R, True)]


@pytest.mark.requirement("PR-42")
def test_a_job_that_bypasses_the_scheduler() -> None:
    """It may have ranks of other jobs, and nobody else counts them."""
    bypass = [Submit(), Alloc(R, bypass=True), CANCEL, FINAL]
    state = ran(instance(*UNMOUNTING), *job(*bypass, id_=2))
    assert state.scheduler.allocated == {1: R}
    assert state.decide()[1] == JobEvent(2, Free())
    assert outputs(state, *job(Free(), Clean(), id_=2)) == []
    assert outputs(state, Restart()) == [Hello((HelloResponse(1, R),))]
    restarted = ran(state, Restart())
    assert rebuild({1: UNMOUNTING, 2: bypass}, state.settings) == restarted
    assert rebuild({1: iter(UNMOUNTING), 2: iter(bypass)}, state.settings) == restarted
    assert state.members[2].books == NO_RANKS
    freed = ran(state, *job(Free(), id_=2), Restart())
    assert freed.members[2].housekeeping == Housekeeping()
    lost = ran(state, *job(SCHEDULER_RESTART, id_=2))
    assert lost.scheduler == state.scheduler


# -- what the job manager decides --


@pytest.mark.requirement("PR-18")
def test_nothing_is_decided_while_an_epilog_start_is_queued() -> None:
    state = ran(instance(*UNMOUNTING), *job(Submit(), CANCEL, id_=2))
    assert {each.job for each in state.decide()} == {1, 2}
    assert state.decide({1: [EpilogStart("f")]}) == (JobEvent(2, Clean()),)


def test_rules_have_the_names_of_the_specification() -> None:
    spec = (Path(__file__).parent.parent / "tla" / "Instance.tla").read_text()
    names = [*INSTANCE_STATE_RULES, *INSTANCE_STEP_RULES]
    assert len(names) == 7
    for name in names:
        assert re.search(rf"(?m)^{name} ==", spec), name
