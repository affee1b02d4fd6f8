"""What the scheduler believes: grants, fragments, hello; and Fluxion, as it was seen to behave."""

import pytest

from partialrelease import NO_RANKS, HelloResponse, IdSet, InstanceCode, InstanceError, Scheduler
from partialrelease.scheduler import drop, free, free_guard, grant, grant_guard, hello

R = IdSet("0-3")
ONE = frozenset({1})
BOTH = frozenset({1, 2})


def code(refused: InstanceError | None) -> InstanceCode:
    assert refused is not None
    assert " " in refused.message  # words for people
    assert str(refused) == f"{refused.code}: {refused.message}"
    return refused.code


@pytest.mark.requirement("PR-41")
def test_what_is_allocated_is_not_granted_again() -> None:
    one = grant(Scheduler(), 1, IdSet("0-1"))
    assert grant_guard(one, 2, IdSet("2-3")) is None
    refused = grant_guard(one, 2, IdSet("1-2"))
    assert code(refused) is InstanceCode.NotFree
    assert refused is not None
    assert refused.ranks == IdSet("1")
    assert str(refused) == "NotFree: job 2 is granted rank 1, allocated already"
    two = grant(one, 2, IdSet("2-3"))
    assert two.allocated == {1: IdSet("0-1"), 2: IdSet("2-3")}
    assert two.all_allocated == R


@pytest.mark.requirement("PR-33")
def test_fragments_come_back() -> None:
    one = grant(Scheduler(has_off_node=BOTH), 1, R)
    assert one.off_node == {1}
    one = free(one, 1, IdSet("0,2"), final=False)
    assert one.allocated == {1: IdSet("1,3")}
    refused = free_guard(one, 1, IdSet("2-3"), final=False)
    assert code(refused) is InstanceCode.NotAllocated
    assert refused is not None
    assert refused.ranks == IdSet("2")
    assert code(free_guard(one, 2, IdSet("1"), final=False)) is InstanceCode.NotAllocated
    assert free_guard(one, 1, IdSet("1,3"), final=True) is None
    assert free(one, 1, IdSet("1,3"), final=True) == Scheduler(has_off_node=BOTH)


@pytest.mark.requirement("PR-35")
def test_the_final_fragment_may_be_empty() -> None:
    one = free(grant(Scheduler(has_off_node=BOTH), 1, R), 1, R, final=False)
    assert (one.allocated, one.off_node) == ({1: NO_RANKS}, ONE)
    assert free_guard(one, 1, NO_RANKS, final=True) is None
    one = free(one, 1, NO_RANKS, final=True)
    assert (one.allocated, one.off_node) == ({}, frozenset())
    assert code(free_guard(one, 1, NO_RANKS, final=True)) is InstanceCode.NotAllocated


@pytest.mark.requirement("PR-29")
def test_fluxion_forgets_a_job_with_its_last_rank() -> None:
    one = free(grant(Scheduler(fluxion=True, has_off_node=BOTH), 1, R), 1, IdSet("0-2"), final=False)
    assert free(one, 1, IdSet("3"), final=True).off_node == frozenset()  # the last rank with `final`: all is well
    one = free(one, 1, IdSet("3"), final=False)
    assert (one.allocated, one.off_node) == ({}, ONE)
    assert free_guard(one, 1, NO_RANKS, final=True) is None  # taken without complaint
    assert free(one, 1, NO_RANKS, final=True) == one
    assert code(free_guard(one, 1, NO_RANKS, final=False)) is InstanceCode.NotAllocated
    assert hello(one, [HelloResponse(1, R, R)]) == one  # and it forgets one that a hello says is all free
    other = hello(Scheduler(has_off_node=BOTH), [HelloResponse(1, R, R)])
    assert (other.allocated, other.off_node) == ({1: NO_RANKS}, ONE)


def test_a_job_that_is_dropped_has_nothing() -> None:
    one = grant(Scheduler(has_off_node=BOTH), 1, R)
    assert drop(one, 1) == Scheduler(has_off_node=BOTH)
    assert drop(one, 2) == one


def test_hello_tells_all() -> None:
    before = grant(Scheduler(has_off_node=BOTH), 3, IdSet("8-9"))
    responses = [HelloResponse(1, R, IdSet("0")), HelloResponse(2, IdSet("4"))]
    after = hello(before, responses)
    assert (after.allocated, after.off_node) == ({1: IdSet("1-3"), 2: IdSet("4")}, BOTH)


@pytest.mark.requirement("PR-39")
def test_without_partial_ok_a_hello_means_the_whole_r() -> None:
    responses = [HelloResponse(1, R, IdSet("0")), HelloResponse(2, IdSet("0"))]
    assert hello(Scheduler(partial_ok=False), responses).allocated == {1: R, 2: IdSet("0")}  # double booking


def test_hello_of_a_job_without_ranks() -> None:
    response = [HelloResponse(1, R, R)]
    assert hello(Scheduler(has_off_node=BOTH), response).allocated == {1: NO_RANKS}
    forgetful = hello(Scheduler(fluxion=True, has_off_node=BOTH), response)
    assert (forgetful.allocated, forgetful.off_node) == ({}, ONE)


def test_equal_beliefs_are_equal_whatever_their_order() -> None:
    one = grant(grant(Scheduler(), 1, IdSet("0")), 2, IdSet("1"))
    two = grant(grant(Scheduler(), 2, IdSet("1")), 1, IdSet("0"))
    assert one == two
    assert hash(one) == hash(two)


def test_schedulers_are_values() -> None:
    one = grant(Scheduler(), 1, IdSet("0-1"))
    assert one == grant(Scheduler(), 1, IdSet("0-1"))
    assert hash(one) == hash(grant(Scheduler(), 1, IdSet("0-1")))
    assert one != grant(Scheduler(), 1, IdSet("0"))
    assert one != Scheduler()
