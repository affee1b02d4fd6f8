"""The rules of one job, an event at a time, in the order of the specification; then `decide` and `settle`."""

import copy
import pickle
from functools import reduce
from typing import Any

import pytest

from partialrelease import (
    ALL_RANKS,
    NO_RANKS,
    Alloc,
    Clean,
    Code,
    Depend,
    DependencyAdd,
    EpilogFinish,
    EpilogStart,
    Event,
    Exec,
    Finish,
    FluxRestart,
    Free,
    IdSet,
    Invalidate,
    Job,
    JobException,
    JobspecUpdate,
    LastRank,
    Malformed,
    Memo,
    PartialFree,
    Phase,
    Priority,
    PrologFinish,
    PrologStart,
    ProtocolViolation,
    Release,
    Start,
    Submit,
    Unknown,
    Urgency,
    Validate,
    apply,
    decide,
    effect,
    guard,
    settle,
)

R = IdSet("0-3")
CANCEL = JobException("cancel", 0)
SCHEDULER_RESTART = JobException("scheduler-restart", 0)
FINAL = Release(ALL_RANKS, True)
PENDING = (Submit(), Validate(), Depend(), Priority())
ALLOCATED = (*PENDING, Alloc(R))
RUNNING = (*ALLOCATED, Start())
FINISHED = (*RUNNING, Finish())
DONE = (*FINISHED, FINAL)  # allocated, gate open, exec done


def job(*events: Event, **settings: Any) -> Job:
    """The job after these events, all of them legal."""
    return reduce(apply, events, Job(**settings))


def refused(state: Job, event: Event) -> ProtocolViolation:
    """The violation that `event` is; `apply` says the same as `guard`."""
    found = guard(state, event)
    assert found is not None
    assert found.event is event
    with pytest.raises(ProtocolViolation) as raised:
        apply(state, event)
    assert (raised.value.code, raised.value.message) == (found.code, found.message)
    assert str(found) == f"{found.code}: {found.message}"
    return found


def code(state: Job, event: Event) -> Code:
    return refused(state, event).code


def drops(ranks: str, description: str = "a") -> Release:
    return Release(IdSet(ranks), False, description)


# -- before the allocation --


@pytest.mark.requirement("PR-04", "PR-23")
def test_a_job_begins_with_submit() -> None:
    assert job(Submit()).phase is Phase.NEW
    for event in (Validate(), Alloc(R), Unknown("debug.x"), Memo()):
        assert code(Job(), event) is Code.WrongPhase
    assert code(job(Submit()), Submit()) is Code.WrongPhase
    assert effect(job(*RUNNING), Submit()) == job(*RUNNING)
    assert code(Job(), Malformed("submit", "no userid")) is Code.MalformedContext
    assert code(Job(), EpilogFinish("e")) is Code.UnknownHolder


@pytest.mark.requirement("PR-04", "PR-21")
@pytest.mark.parametrize(
    ("events", "phase"),
    [
        ((Validate(),), Phase.DEPEND),
        ((Invalidate(),), Phase.INACTIVE),
        ((Validate(), Invalidate()), Phase.DEPEND),
        ((Depend(),), Phase.NEW),
        ((Priority(),), Phase.NEW),
        ((Validate(), Validate()), Phase.DEPEND),
        ((Validate(), Depend()), Phase.PRIORITY),
        ((Validate(), Depend(), Priority()), Phase.SCHED),
        ((Validate(), Depend(), Priority(), Priority()), Phase.SCHED),
        ((Validate(), Depend(), Priority(), Urgency()), Phase.PRIORITY),
        ((Validate(), Depend(), Priority(), JobspecUpdate()), Phase.PRIORITY),
        ((Validate(), Depend(), Priority(), FluxRestart()), Phase.PRIORITY),
        ((Urgency(), JobspecUpdate(), FluxRestart()), Phase.NEW),
        ((Validate(), DependencyAdd(), Memo(), Unknown("x")), Phase.DEPEND),
        ((JobException("cancel", 1),), Phase.NEW),
        ((CANCEL,), Phase.CLEANUP),
        ((Validate(), Depend(), Validate()), Phase.PRIORITY),
        ((Validate(), Depend(), Priority(), Validate(), Depend(), Invalidate()), Phase.SCHED),
    ],
)
def test_before_the_allocation_what_does_not_fit_the_phase_is_ignored(events: tuple[Event, ...], phase: Phase) -> None:
    assert job(Submit(), *events).phase is phase


@pytest.mark.parametrize(
    "event", [Validate(), Invalidate(), Depend(), Priority(), Urgency(), JobspecUpdate(), FluxRestart()]
)
@pytest.mark.parametrize("events", [ALLOCATED, RUNNING, FINISHED, (*DONE, EpilogStart("a"))])
def test_what_comes_before_the_allocation_changes_nothing_after_it(events: tuple[Event, ...], event: Event) -> None:
    assert apply(job(*events), event) == job(*events)


# -- alloc --


@pytest.mark.requirement("PR-04", "PR-06")
@pytest.mark.parametrize("before", [PENDING[:1], PENDING[:2], PENDING[:3], PENDING])
def test_alloc_brings_a_job_of_any_phase_to_run_and_asks_for_its_start(before: tuple[Event, ...]) -> None:
    state = job(*before, Alloc(R))
    assert (state.phase, state.allocation, state.held, state.exec) == (Phase.RUN, R, R, Exec.REQUESTED)
    assert state.holders == ()
    assert not state.gate_open
    assert state.releasable == NO_RANKS


@pytest.mark.requirement("PR-04")
def test_a_grant_that_crossed_a_cancel_is_held_in_cleanup() -> None:
    state = job(*PENDING, CANCEL, Alloc(R))
    assert (state.phase, state.held, state.exec, state.releasable) == (Phase.CLEANUP, R, Exec.IDLE, R)
    assert job(*PENDING, CANCEL, Alloc(R), Free(), Clean()).phase is Phase.INACTIVE


@pytest.mark.requirement("PR-04")
def test_alloc_comes_once_and_with_ranks() -> None:
    assert code(job(*ALLOCATED), Alloc(R)) is Code.WrongPhase
    assert code(job(*DONE, Free()), Alloc(R)) is Code.WrongPhase
    assert code(job(*PENDING), Alloc(NO_RANKS)) is Code.MalformedContext
    assert effect(job(*ALLOCATED), Alloc(IdSet("7"))) == job(*ALLOCATED)
    assert effect(job(*PENDING), Alloc(NO_RANKS)) == job(*PENDING)


# -- prolog --


@pytest.mark.requirement("PR-06", "PR-11")
def test_a_prolog_withdraws_the_start_request_until_the_last_one_finishes() -> None:
    state = job(*ALLOCATED, PrologStart("p"), PrologStart("q"))
    assert (state.exec, state.exec_ranks, state.referenced) == (Exec.IDLE, NO_RANKS, R)
    assert code(state, Start()) is Code.WrongPhase
    assert [str(holder) for holder in refused(state, Start()).holders] == ["prolog 'p'", "prolog 'q'"]
    state = apply(state, PrologFinish("p"))
    assert state.exec is Exec.IDLE
    state = apply(state, PrologFinish("q"))
    assert (state.exec, state.exec_ranks) == (Exec.REQUESTED, R)
    anew = job(*ALLOCATED, Release(IdSet("0-1"), False), PrologStart("p"), PrologFinish("p"))
    assert (anew.exec, anew.exec_ranks) == (Exec.REQUESTED, R)


@pytest.mark.requirement("PR-04")
def test_a_prolog_before_the_allocation_references_all_of_it() -> None:
    state = job(*PENDING, PrologStart("p"), Alloc(R))
    assert (state.referenced, state.exec) == (R, Exec.IDLE)
    assert state.actions[0].ranks == R


@pytest.mark.requirement("PR-08")
def test_a_prolog_goes_by_its_description_and_comes_before_start() -> None:
    state = job(*ALLOCATED, PrologStart("p"))
    assert code(state, PrologStart("p")) is Code.DuplicateHolder
    assert code(state, PrologFinish("q")) is Code.UnknownHolder
    assert code(state, EpilogFinish("p")) is Code.UnknownHolder
    assert code(job(*RUNNING), PrologStart("p")) is Code.WrongPhase
    late = effect(job(*RUNNING), PrologStart("p"))
    assert (late.exec, len(late.actions)) == (Exec.RUNNING, 1)


@pytest.mark.requirement("PR-07", "PR-11")
def test_a_prolog_active_at_a_fatal_exception_holds_the_ranks_and_the_exec_system_owes_nothing() -> None:
    state = job(*ALLOCATED, PrologStart("p"), CANCEL)
    assert (state.phase, state.exec, state.referenced) == (Phase.CLEANUP, Exec.IDLE, R)
    assert code(state, Free()) is Code.ReleasedWhileReferenced
    assert code(state, FINAL) is Code.WrongPhase
    assert job(*ALLOCATED, PrologStart("p"), CANCEL, PrologFinish("p"), Free(), Clean()).phase is Phase.INACTIVE
    late = job(*ALLOCATED, CANCEL, PrologStart("late"))
    assert late.exec is Exec.REQUESTED  # not withdrawn any more
    assert code(late, Start()) is Code.WrongPhase


# -- start, finish --


@pytest.mark.requirement("PR-04")
def test_start_makes_the_exec_system_a_holder_of_all_ranks() -> None:
    state = job(*RUNNING)
    assert [(str(holder), holder.description, holder.ranks) for holder in state.holders] == [("the exec system", "", R)]
    assert not state.gate_open
    assert code(state, Start()) is Code.WrongPhase
    assert effect(state, Start()) == state


@pytest.mark.requirement("PR-11")
def test_start_needs_a_request() -> None:
    assert code(job(*PENDING), Start()) is Code.WrongPhase
    assert code(job(*PENDING, CANCEL, Alloc(R)), Start()) is Code.WrongPhase
    assert code(job(*DONE), Start()) is Code.WrongPhase
    forced = effect(job(*ALLOCATED, PrologStart("p")), Start())
    assert (forced.exec, forced.exec_ranks) == (Exec.RUNNING, R)
    early = effect(job(*PENDING), Start())
    assert code(early, Release(IdSet("0"))) is Code.NotHeld
    assert (apply(early, Alloc(R)).referenced, apply(early, Alloc(R)).exec_ranks) == (R, R)


def test_a_job_may_start_after_a_fatal_exception() -> None:
    assert job(*ALLOCATED, CANCEL, Start(), Finish(), FINAL, Free(), Clean()).phase is Phase.INACTIVE


@pytest.mark.requirement("PR-04")
def test_finish_opens_the_gate() -> None:
    state = job(*FINISHED)
    assert (state.phase, state.gate_open, state.releasable) == (Phase.CLEANUP, True, NO_RANKS)
    assert job(*ALLOCATED, Finish()).phase is Phase.CLEANUP
    for events in (PENDING, FINISHED, DONE, (*ALLOCATED, PrologStart("p"))):
        assert code(job(*events), Finish()) is Code.WrongPhase
    assert effect(job(*ALLOCATED, PrologStart("p")), Finish()).phase is Phase.CLEANUP


# -- exception --


@pytest.mark.requirement("PR-07")
def test_a_fatal_exception_leaves_the_exec_system_owing_its_final_release() -> None:
    state = job(*ALLOCATED, CANCEL)
    assert (state.phase, state.exec, state.gate_open) == (Phase.CLEANUP, Exec.REQUESTED, False)
    assert code(state, Free()) is Code.GateClosed
    found = refused(state, Clean())
    assert found.code is Code.CleanWhileHeld
    assert "owes its final release" in found.message
    assert job(*ALLOCATED, CANCEL, Release(R, True), Free(), Clean()).phase is Phase.INACTIVE


@pytest.mark.requirement("PR-04")
def test_scheduler_restart_takes_the_allocation_away() -> None:
    state = job(*DONE, EpilogStart("a", NO_RANKS), SCHEDULER_RESTART)
    assert (state.held, state.released, state.lost) == (NO_RANKS, NO_RANKS, R)
    assert code(state, Free()) is Code.WrongPhase
    assert "its allocation is over" in refused(state, Free()).message
    assert job(*DONE, SCHEDULER_RESTART, Clean()).phase is Phase.INACTIVE
    assert job(*DONE, JobException("scheduler-restart", 1)).held == R
    assert job(*PENDING, SCHEDULER_RESTART).phase is Phase.CLEANUP
    assert job(*DONE, Free(), SCHEDULER_RESTART).released == R


@pytest.mark.requirement("PR-04", "PR-20")
def test_after_a_loss_the_exec_system_ends_with_a_final_release_of_what_it_still_has() -> None:
    state = effect(job(*FINISHED), SCHEDULER_RESTART)
    assert (state.exec, state.exec_ranks, decide(state)) == (Exec.FINISHED, NO_RANKS, None)
    assert code(state, Release(R, True)) is Code.NotHeld
    assert decide(apply(state, FINAL)) == Clean()


@pytest.mark.requirement("PR-22", "PR-24")
def test_losing_referenced_ranks_is_reported() -> None:
    state = job(*RUNNING)
    found = refused(state, SCHEDULER_RESTART)
    assert (found.code, found.ranks, [str(h) for h in found.holders]) == (Code.ResourcesLost, R, ["the exec system"])
    after = effect(state, SCHEDULER_RESTART)
    assert (after.phase, after.lost, after.referenced, after.exec_ranks) == (Phase.CLEANUP, R, NO_RANKS, NO_RANKS)
    part = job(*DONE, EpilogStart("a"), drops("0"), PartialFree(IdSet("0")))
    assert (refused(part, SCHEDULER_RESTART).ranks, effect(part, SCHEDULER_RESTART).lost) == (R - IdSet("0"),) * 2


# -- release --


@pytest.mark.requirement("PR-04")
def test_the_exec_system_gives_ranks_back_in_parts() -> None:
    state = job(*RUNNING, Release(IdSet("0")))
    assert (state.referenced, state.held, state.releasable) == (IdSet("1-3"), R, NO_RANKS)
    assert refused(state, Release(IdSet("0-1"))).ranks == IdSet("0")
    assert code(state, Release(IdSet("0-1"))) is Code.NotHeld
    state = reduce(apply, (Finish(), Release(IdSet("1"))), state)
    assert state.releasable == IdSet("0-1")
    assert apply(state, Release(ALL_RANKS)).referenced == NO_RANKS
    assert apply(state, Release(NO_RANKS)) == state


@pytest.mark.requirement("PR-04")
def test_the_final_release_ends_the_exec_system_and_comes_after_finish() -> None:
    assert job(*DONE).exec is Exec.DONE
    assert job(*FINISHED, Release(IdSet("0"), True)).exec is Exec.DONE
    assert code(job(*RUNNING), FINAL) is Code.WrongPhase
    assert code(job(*ALLOCATED), FINAL) is Code.WrongPhase
    assert code(job(*RUNNING, CANCEL), FINAL) is Code.WrongPhase
    assert code(job(*DONE), FINAL) is Code.WrongPhase
    assert code(job(*PENDING), FINAL) is Code.WrongPhase
    assert job(*DONE).exec_ranks == NO_RANKS
    for events in (DONE, PENDING, (*ALLOCATED, PrologStart("p"))):
        assert effect(job(*events), FINAL) == job(*events)
    too_early = effect(job(*RUNNING), FINAL)
    assert apply(too_early, Finish()) == job(*DONE)


@pytest.mark.requirement("PR-02")
def test_an_epilog_gives_ranks_back_in_parts() -> None:
    state = job(*DONE, EpilogStart("a"), EpilogStart("b", IdSet("0")), drops("0-1"))
    assert (state.referenced, state.releasable) == (IdSet("0,2-3"), IdSet("1"))
    assert code(state, drops("1-2")) is Code.NotHeld
    assert refused(state, drops("1-2")).ranks == IdSet("1")
    assert code(state, drops("0", "c")) is Code.UnknownHolder
    assert job(*DONE, EpilogStart("a"), Release(ALL_RANKS, False, "a")).releasable == R
    assert effect(state, drops("0", "c")) == state
    assert code(state, Release(IdSet("0"), True, "a")) is Code.MalformedContext


@pytest.mark.requirement("PR-24")
def test_of_two_references_of_one_description_that_one_gives_which_has_the_ranks() -> None:
    twice = effect(job(*DONE, EpilogStart("a")), EpilogStart("a"))
    once_given = apply(twice, drops("0"))
    assert [str(holder.ranks) for holder in once_given.actions] == ["1-3", "0-3"]
    both_given = apply(once_given, drops("0"))
    assert [str(holder.ranks) for holder in both_given.actions] == ["1-3", "1-3"]
    assert code(both_given, drops("0")) is Code.NotHeld
    assert [str(h.ranks) for h in apply(both_given, EpilogFinish("a")).actions] == ["1-3"]


def test_of_several_references_of_one_description_the_oldest_that_has_the_ranks_gives_them_or_else_the_oldest() -> None:
    twice = effect(job(*DONE, EpilogStart("a", IdSet("0"))), EpilogStart("a", IdSet("0-1")))
    assert [str(holder.ranks) for holder in apply(twice, drops("0")).actions] == ["", "0-1"]
    assert refused(twice, drops("0-2")).ranks == IdSet("1-2")
    assert [str(holder.ranks) for holder in effect(twice, drops("0-2")).actions] == ["", "0-1"]


def test_an_epilog_outside_cleanup_is_out_of_place() -> None:
    early = effect(job(*RUNNING), EpilogStart("a"))
    assert code(job(*RUNNING), EpilogStart("a")) is Code.WrongPhase
    assert code(early, drops("0")) is Code.WrongPhase
    assert refused(early, drops("0")).message == "epilog 'a' releases ranks in RUN, not in CLEANUP"
    assert guard(early, EpilogFinish("a")) is None


# -- epilog-start, epilog-finish --


@pytest.mark.requirement("PR-01")
@pytest.mark.parametrize(
    ("ranks", "referenced"),
    [(None, R), (ALL_RANKS, R), (NO_RANKS, NO_RANKS), (IdSet("0"), IdSet("0")), (IdSet("1-2"), IdSet("1-2"))],
)
def test_an_epilog_references_what_it_says_and_all_that_is_held_if_it_says_nothing(
    ranks: IdSet | None, referenced: IdSet
) -> None:
    state = job(*DONE, EpilogStart("a", ranks))
    assert (state.referenced, state.releasable) == (referenced, R - referenced)
    assert apply(state, EpilogFinish("a")).referenced == NO_RANKS


@pytest.mark.requirement("PR-01", "PR-10")
def test_all_means_all_that_are_held_now() -> None:
    state = job(*DONE, EpilogStart("a", IdSet("3")), PartialFree(IdSet("0-2")), EpilogStart("late"))
    assert state.referenced == IdSet("3")
    assert code(state, EpilogStart("x", IdSet("2-3"))) is Code.NotHeld
    assert effect(state, EpilogStart("x", IdSet("2-3"))).actions[-1].ranks == IdSet("3")


@pytest.mark.requirement("PR-01")
def test_an_epilog_that_started_before_the_allocation_references_all_of_it() -> None:
    pending = job(*PENDING, CANCEL, EpilogStart("a"), EpilogStart("b", NO_RANKS))
    assert (pending.referenced, pending.actions[0].ranks) == (NO_RANKS, ALL_RANKS)
    assert code(pending, Clean()) is Code.CleanWhileHeld
    assert code(pending, EpilogStart("c", IdSet("0"))) is Code.NotHeld
    assert code(pending, PartialFree(IdSet("0"))) is Code.NotHeld
    assert code(pending, drops("0")) is Code.NotHeld
    for early in (PartialFree(IdSet("0")), Free()):
        assert effect(pending, early) == pending
    granted = apply(pending, Alloc(R))
    assert (granted.referenced, granted.releasable) == (R, NO_RANKS)
    assert [str(holder.ranks) for holder in granted.actions] == ["0-3", ""]


@pytest.mark.requirement("PR-08")
def test_holders_are_matched_by_description() -> None:
    state = job(*DONE, EpilogStart("a"))
    assert code(state, EpilogStart("a", NO_RANKS)) is Code.DuplicateHolder
    found = refused(state, EpilogFinish("b"))
    assert (found.code, found.holders) == (Code.UnknownHolder, state.actions)
    assert effect(state, EpilogFinish("b")) == state
    assert "no epilog is active" in refused(job(*DONE), EpilogFinish("b")).message


# -- partial-free, free --


@pytest.mark.requirement("PR-03", "PR-12", "PR-14")
def test_partial_free_hands_over_what_nobody_references() -> None:
    state = job(*DONE, EpilogStart("a", IdSet("0")), PartialFree(IdSet("1,3")))
    assert (state.held, state.released, state.releasable) == (IdSet("0,2"), IdSet("1,3"), IdSet("2"))
    assert code(state, PartialFree(NO_RANKS)) is Code.MalformedContext
    assert code(state, PartialFree(IdSet("1-2"))) is Code.NotHeld
    assert refused(state, PartialFree(IdSet("1-2"))).ranks == IdSet("1")
    found = refused(state, PartialFree(IdSet("0,2")))
    assert (found.code, found.ranks, found.holders) == (Code.ReleasedWhileReferenced, IdSet("0"), state.actions)
    assert effect(state, PartialFree(IdSet("0,2"))).actions[0].ranks == NO_RANKS
    assert code(job(*DONE), PartialFree(IdSet("0"))) is Code.WrongPhase
    assert code(job(*DONE, EpilogStart("a", NO_RANKS), last_rank="defer"), PartialFree(ALL_RANKS)) is Code.NotHeld


@pytest.mark.requirement("PR-13", "PR-23")
def test_nothing_is_handed_over_while_the_gate_is_closed() -> None:
    state = job(*RUNNING, CANCEL, EpilogStart("a", NO_RANKS), Release(IdSet("0")))
    assert code(state, PartialFree(IdSet("0"))) is Code.GateClosed
    assert code(state, PartialFree(IdSet("7"))) is Code.GateClosed
    assert code(state, PartialFree(IdSet("1"))) is Code.ReleasedWhileReferenced
    assert guard(apply(state, Finish()), PartialFree(IdSet("0"))) is None
    assert code(job(*ALLOCATED), Free()) is Code.GateClosed
    assert "in RUN" in refused(job(*ALLOCATED), Free()).message


@pytest.mark.requirement("PR-28")
@pytest.mark.parametrize(("last_rank", "free"), [("keep", False), ("defer", True), ("with-last", True)])
def test_the_last_rank_may_go_as_the_setting_says(last_rank: str, free: bool) -> None:
    state = job(*DONE, EpilogStart("a", NO_RANKS), last_rank=LastRank(last_rank))
    found = guard(state, PartialFree(R))
    assert (found is None) is free
    assert found is None or (found.code, found.ranks) == (Code.LastRankFreed, R)
    assert guard(state, PartialFree(IdSet("1-3"))) is None


@pytest.mark.requirement("PR-14", "PR-15")
def test_free_hands_over_the_rest_once_and_last() -> None:
    state = job(*DONE, EpilogStart("a"), drops("0"), PartialFree(IdSet("0")), EpilogFinish("a"), Free())
    assert (state.held, state.released, state.closed) == (NO_RANKS, R, True)
    assert code(state, Free()) is Code.WrongPhase
    assert effect(state, Free()) == state
    assert code(job(*PENDING, CANCEL), Free()) is Code.WrongPhase


@pytest.mark.requirement("PR-12", "PR-15")
def test_free_while_referenced_or_while_a_holder_is_active_on_no_rank() -> None:
    assert code(job(*FINISHED), Free()) is Code.ReleasedWhileReferenced
    assert code(job(*DONE, EpilogStart("a", NO_RANKS)), Free()) is Code.FreeWhileActive
    part = job(*DONE, EpilogStart("a"), drops("0-1"), EpilogStart("b", NO_RANKS))
    found = refused(part, Free())
    assert (found.code, found.ranks, [h.description for h in found.holders]) == (
        Code.ReleasedWhileReferenced,
        IdSet("2-3"),
        ["a"],
    )


# -- clean, and what comes after --


@pytest.mark.requirement("PR-16")
def test_clean_needs_everything_gone() -> None:
    assert job(*DONE, Free(), Clean()).phase is Phase.INACTIVE
    assert job(*PENDING, CANCEL, Clean()).phase is Phase.INACTIVE
    for events in (DONE, FINISHED, (*DONE, EpilogStart("a")), (*PENDING, CANCEL, EpilogStart("a"))):
        assert code(job(*events), Clean()) is Code.CleanWhileHeld
    emptied = job(*DONE, EpilogStart("a", NO_RANKS), PartialFree(R), EpilogFinish("a"), last_rank=LastRank.DEFER)
    assert "it was not freed" in refused(emptied, Clean()).message
    assert "rank 7 is still held" in refused(job(*PENDING, CANCEL, Alloc(IdSet("7"))), Clean()).message
    assert code(job(*RUNNING), Clean()) is Code.WrongPhase


@pytest.mark.requirement("PR-16", "PR-23")
@pytest.mark.parametrize(
    "event", [Submit(), Clean(), Free(), Memo(), Unknown("debug.x"), CANCEL, Malformed("free", "")]
)
def test_nothing_follows_inactive(event: Event) -> None:
    ended = job(*DONE, Free(), Clean())
    assert code(ended, event) is Code.AfterInactive
    assert effect(ended, event) == ended


@pytest.mark.requirement("PR-22", "PR-25")
def test_a_malformed_event_is_refused_and_taken_for_what_it_meant() -> None:
    state = job(*DONE)
    assert code(state, Malformed("free", "its context is not empty", Free())) is Code.MalformedContext
    assert effect(state, Malformed("free", "its context is not empty", Free())) == apply(state, Free())
    assert effect(state, Malformed("epilog-finish", "no description")) == state


# -- what a violation says --


@pytest.mark.parametrize(
    ("events", "event", "code", "message", "ranks", "holders"),
    [
        ((), Memo(), Code.WrongPhase, "memo comes first: a job begins with submit", "", []),
        (PENDING, Submit(), Code.WrongPhase, "a second submit: a job is submitted once, by its first event", "", []),
        (
            (*DONE, Free(), Clean()),
            Memo(),
            Code.AfterInactive,
            "memo after the job became INACTIVE: nothing may follow",
            "",
            [],
        ),
        (
            DONE,
            Malformed("free", "its context is not empty"),
            Code.MalformedContext,
            "its context is not empty (RFC 21)",
            "",
            [],
        ),
        (PENDING, Alloc(NO_RANKS), Code.MalformedContext, "alloc: R has no ranks (RFC 20)", "", []),
        (ALLOCATED, Alloc(IdSet("7")), Code.WrongPhase, "a second alloc: the job has its allocation already", "7", []),
        (
            (*ALLOCATED, PrologStart("p")),
            PrologStart("p"),
            Code.DuplicateHolder,
            "prolog 'p' starts while another of that description is active: their ends cannot be told apart",
            "",
            ["prolog 'p'"],
        ),
        (RUNNING, PrologStart("p"), Code.WrongPhase, "prolog 'p' starts after the job has started", "", []),
        (
            PENDING,
            PrologFinish("p"),
            Code.UnknownHolder,
            "prolog 'p' finishes but is not active (no prolog is active): it ends no hold",
            "",
            [],
        ),
        (
            (*ALLOCATED, PrologStart("p"), PrologStart("q")),
            PrologFinish("r"),
            Code.UnknownHolder,
            "prolog 'r' finishes but is not active (active: prolog 'p' and prolog 'q'): it ends no hold",
            "",
            ["prolog 'p'", "prolog 'q'"],
        ),
        (RUNNING, Start(), Code.WrongPhase, "the job has started already", "", []),
        (
            (*ALLOCATED, PrologStart("p")),
            Start(),
            Code.WrongPhase,
            "the job starts although a prolog is active",
            "",
            ["prolog 'p'"],
        ),
        (PENDING, Start(), Code.WrongPhase, "the job starts although nothing is allocated", "", []),
        ((*PENDING, CANCEL, Alloc(R)), Start(), Code.WrongPhase, "the job starts although nobody asked for it", "", []),
        (PENDING, Finish(), Code.WrongPhase, "the job finishes, but it was not started", "", []),
        (FINISHED, Finish(), Code.WrongPhase, "the job finishes, but it has finished already", "", []),
        (
            RUNNING,
            SCHEDULER_RESTART,
            Code.ResourcesLost,
            "the scheduler restarted and took ranks 0-3 away, still in use by the exec system",
            "0-3",
            ["the exec system"],
        ),
        (
            PENDING,
            Release(IdSet("0")),
            Code.WrongPhase,
            "the exec system releases ranks, but it has not been asked to start the job",
            "0",
            [],
        ),
        (
            DONE,
            Release(IdSet("0")),
            Code.WrongPhase,
            "the exec system releases ranks, but it made its final release before",
            "0",
            [],
        ),
        (
            (*RUNNING, CANCEL, EpilogStart("a")),
            Release(IdSet("0"), True),
            Code.WrongPhase,
            "the exec system's final release comes before the job's finish",
            "0",
            ["the exec system"],
        ),
        (RUNNING, Release(IdSet("2-5")), Code.NotHeld, "the exec system does not hold ranks 4-5", "4-5", []),
        (
            (*DONE, EpilogStart("a")),
            Release(IdSet("0"), True, "a"),
            Code.MalformedContext,
            "'final' is true: only the exec system's release can be final",
            "",
            [],
        ),
        (
            (*DONE, EpilogStart("a")),
            drops("0", "b"),
            Code.UnknownHolder,
            "epilog 'b' releases ranks but is not active (active: epilog 'a'): it ends no hold",
            "",
            ["epilog 'a'"],
        ),
        (
            (*DONE, EpilogStart("a", IdSet("0"))),
            drops("0-2"),
            Code.NotHeld,
            "epilog 'a' does not hold ranks 1-2",
            "1-2",
            ["epilog 'a'"],
        ),
        (
            (*DONE, EpilogStart("a")),
            EpilogStart("a"),
            Code.DuplicateHolder,
            "epilog 'a' starts while another of that description is active: their ends cannot be told apart",
            "",
            ["epilog 'a'"],
        ),
        (RUNNING, EpilogStart("a"), Code.WrongPhase, "epilog 'a' starts in RUN, not in CLEANUP", "", []),
        (DONE, EpilogStart("a", IdSet("3-4")), Code.NotHeld, "the job does not hold rank 4", "4", []),
        (
            DONE,
            EpilogFinish("a"),
            Code.UnknownHolder,
            "epilog 'a' finishes but is not active (no epilog is active): it ends no hold",
            "",
            [],
        ),
        (
            (*DONE, EpilogStart("a")),
            PartialFree(NO_RANKS),
            Code.MalformedContext,
            "partial-free: 'ranks' is empty",
            "",
            [],
        ),
        (
            DONE,
            PartialFree(IdSet("0")),
            Code.WrongPhase,
            "a partial-free although no holder is active: this is free's part",
            "0",
            [],
        ),
        (
            (*DONE, EpilogStart("a", IdSet("0-1")), EpilogStart("b", IdSet("2"))),
            PartialFree(IdSet("1-2")),
            Code.ReleasedWhileReferenced,
            "ranks 1-2 handed over while still referenced by epilog 'a' and epilog 'b'",
            "1-2",
            ["epilog 'a'", "epilog 'b'"],
        ),
        (
            (*DONE, EpilogStart("a", NO_RANKS)),
            PartialFree(IdSet("3-4")),
            Code.NotHeld,
            "the job does not hold rank 4",
            "4",
            [],
        ),
        (
            (*DONE, EpilogStart("a", NO_RANKS)),
            PartialFree(R),
            Code.LastRankFreed,
            "a partial-free of ranks 0-3 leaves the job no rank while epilog 'a' is active; "
            "with last_rank=keep one stays until free",
            "0-3",
            ["epilog 'a'"],
        ),
        (
            (*RUNNING, CANCEL, EpilogStart("a", NO_RANKS), Release(IdSet("0"))),
            PartialFree(IdSet("0")),
            Code.GateClosed,
            "rank 0 handed over before the exec system is done: the release gate is closed",
            "0",
            [],
        ),
        (PENDING, Free(), Code.WrongPhase, "the job is freed, but nothing is allocated", "", []),
        ((*DONE, Free()), Free(), Code.WrongPhase, "the job is freed, but its allocation is over", "", []),
        (
            (*DONE, EpilogStart("a", NO_RANKS)),
            Free(),
            Code.FreeWhileActive,
            "the job is freed while epilog 'a' is active, although on no rank",
            "0-3",
            ["epilog 'a'"],
        ),
        (ALLOCATED, Free(), Code.GateClosed, "ranks 0-3 handed over in RUN: the release gate is closed", "0-3", []),
        (RUNNING, Clean(), Code.WrongPhase, "the job goes clean in RUN, not in CLEANUP", "", []),
        (
            FINISHED,
            Clean(),
            Code.CleanWhileHeld,
            "the job goes clean although the exec system is active and ranks 0-3 are still held",
            "0-3",
            ["the exec system"],
        ),
        (
            (*ALLOCATED, CANCEL),
            Clean(),
            Code.CleanWhileHeld,
            "the job goes clean although the exec system owes its final release and ranks 0-3 are still held",
            "0-3",
            [],
        ),
        (
            (*PENDING, CANCEL, EpilogStart("a")),
            Clean(),
            Code.CleanWhileHeld,
            "the job goes clean although epilog 'a' is active",
            "",
            ["epilog 'a'"],
        ),
        (
            (*DONE, SCHEDULER_RESTART, EpilogStart("a")),
            Clean(),
            Code.CleanWhileHeld,
            "the job goes clean although epilog 'a' is active",
            "",
            ["epilog 'a'"],
        ),
        (
            (*PENDING, CANCEL, Alloc(IdSet("7"))),
            Clean(),
            Code.CleanWhileHeld,
            "the job goes clean although rank 7 is still held",
            "7",
            [],
        ),
    ],
)
def test_a_violation_says_what_is_wrong_with_which_ranks_and_who_is_concerned(
    events: tuple[Event, ...], event: Event, code: Code, message: str, ranks: str, holders: list[str]
) -> None:
    found = refused(job(*events), event)
    assert (found.code, found.message) == (code, message)
    assert (str(found.ranks), [str(holder) for holder in found.holders]) == (ranks, holders)


def test_a_violation_can_be_copied_and_pickled() -> None:
    found = refused(job(*FINISHED), Free())
    for again in (copy.copy(found), pickle.loads(pickle.dumps(found))):
        assert vars(again) == vars(found)
        assert str(again) == str(found)
        assert again.args == (found.code, found.event, found.message)


def test_messages_shorten_long_rank_sets() -> None:
    scattered = IdSet(range(0, 2000, 2))
    state = job(*PENDING, Alloc(scattered), Start())
    few = "0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,32,34,36,38,40"
    assert refused(state, Free()).message.startswith(f"ranks {few},... (1000 in all) handed over ")
    for ids, text in [
        (
            [*range(100, 130, 2), 1000],
            "ranks 100,102,104,106,108,110,112,114,116,118,120,122,124,126,128,1000 handed over ",
        ),
        (
            [*range(100, 130, 2), 10000],
            "ranks 100,102,104,106,108,110,112,114,116,118,120,122,124,126,128,... (16 in all) ",
        ),
        ([*range(100, 128, 2), 1000, 1002], f"ranks {','.join(map(str, range(100, 128, 2)))},... (16 in all) "),
    ]:
        state = job(*PENDING, Alloc(IdSet(ids)), Start())
        assert refused(state, Free()).message.startswith(text)
    assert "all ranks" in refused(job(*PENDING, Alloc(), Start()), Free()).message


# -- decide, settle --


@pytest.mark.requirement("PR-17", "PR-19")
def test_decide_posts_partial_free_then_free_then_clean() -> None:
    state = job(*DONE, EpilogStart("a", IdSet("0")))
    assert decide(state) == PartialFree(IdSet("1-3"))
    state = apply(state, PartialFree(IdSet("1-3")))
    assert decide(state) is None
    state = apply(state, EpilogFinish("a"))
    assert decide(state) == Free()
    state = apply(state, Free())
    assert decide(state) == Clean()
    assert decide(apply(state, Clean())) is None


@pytest.mark.requirement("PR-17", "PR-28")
def test_decide_keeps_the_lowest_rank_if_it_must_keep_one() -> None:
    off_node = (*DONE, EpilogStart("a", NO_RANKS))
    assert decide(job(*off_node)) == PartialFree(IdSet("1-3"))
    assert decide(job(*off_node, PartialFree(IdSet("1-3")))) is None
    assert decide(job(*off_node, last_rank=LastRank.DEFER)) == PartialFree(R)


@pytest.mark.requirement("PR-18")
def test_nothing_is_decided_before_cleanup_nor_while_an_epilog_start_is_queued() -> None:
    assert decide(job(*RUNNING)) is None
    state = job(*DONE)
    assert decide(state, [Memo(), EpilogStart("a")]) is None
    assert decide(state, [Malformed("epilog-start", "'ranks' is not an idset", EpilogStart("a"))]) is None
    assert decide(state, [Memo(), EpilogFinish("a")]) == Free()


@pytest.mark.requirement("PR-17", "PR-20", "PR-22")
def test_settle_goes_as_far_as_the_job_manager_can() -> None:
    state, posted = settle(job(*DONE, EpilogStart("a", IdSet("0"))))
    assert (posted, state.held) == ((PartialFree(IdSet("1-3")),), IdSet("0"))
    state, posted = settle(apply(state, EpilogFinish("a")))
    assert (posted, state.phase) == ((Free(), Clean()), Phase.INACTIVE)
    assert settle(state) == (state, ())


def test_jobs_are_values() -> None:
    assert hash(job(*DONE)) == hash(job(*DONE))
    assert job(*DONE) != job(*FINISHED)
    with pytest.raises(AttributeError):
        job(*DONE).held = NO_RANKS  # type: ignore[misc]
