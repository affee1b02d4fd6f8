"""Housekeeping of one job: hand-overs, completions, the three policies of `release_after`."""

import pytest

from partialrelease import NO_RANKS, Housekeeping, IdSet, InstanceCode, InstanceError, Timer
from partialrelease.housekeeping import (
    abandon,
    complete,
    complete_guard,
    due,
    expire,
    expire_guard,
    hand_over,
    sent,
)

R = IdSet("0-3")
NOTHING = (NO_RANKS, False)


def code(refused: InstanceError | None) -> InstanceCode:
    assert refused is not None
    assert " " in refused.message  # words for people
    assert str(refused) == f"{refused.code}: {refused.message}"
    return refused.code


def running(ranks: str, *, closing: bool = False) -> Housekeeping:
    return hand_over(Housekeeping(), IdSet(ranks), closing)


def test_ranks_arrive_in_several_hand_overs() -> None:
    one = hand_over(running("0-1"), IdSet("3"), closing=False)
    assert (one.running, one.closing) == (IdSet("0-1,3"), False)
    assert hand_over(hand_over(one, NO_RANKS, closing=True), NO_RANKS, closing=False).closing


@pytest.mark.requirement("PR-31")
def test_only_what_runs_completes() -> None:
    one = running("0-2")
    assert complete_guard(one, IdSet("0-1"), IdSet("1")) is None
    assert code(complete_guard(one, NO_RANKS)) is InstanceCode.NotRunning
    refused = complete_guard(one, IdSet("2-4"))
    assert code(refused) is InstanceCode.NotRunning
    assert refused is not None
    assert refused.ranks == IdSet("3-4")
    assert str(refused) == "NotRunning: housekeeping does not run on ranks 3-4"
    assert code(complete_guard(complete(one, IdSet("0")), IdSet("0"))) is InstanceCode.NotRunning


def test_only_what_completes_can_have_failed() -> None:
    refused = complete_guard(running("0-2"), IdSet("0-1"), IdSet("1-2"))
    assert code(refused) is InstanceCode.NotCompleted
    assert refused is not None
    assert refused.ranks == IdSet("2")


def test_ranks_that_fail_go_back_and_are_remembered() -> None:
    one = complete(complete(running("0-2"), IdSet("0"), IdSet("0")), IdSet("1"), NO_RANKS)
    assert (one.running, one.done, one.failed) == (IdSet("2"), IdSet("0-1"), IdSet("0"))
    one = sent(one, *due(one, 0))
    assert (one.freed, one.failed) == (IdSet("0-1"), IdSet("0"))


@pytest.mark.requirement("PR-32")
def test_unset_waits_for_all() -> None:
    one = complete(running("0-1"), IdSet("0-1"))
    assert due(one) == NOTHING  # more will come
    one = hand_over(one, IdSet("2"), closing=True)
    assert due(one) == NOTHING  # one runs still
    one = complete(one, IdSet("2"))
    assert due(one) == (IdSet("0-2"), True)


@pytest.mark.requirement("PR-32")
def test_zero_waits_for_nothing() -> None:
    one = complete(running("0-1", closing=True), IdSet("1"), release_after=0)
    assert one.timer is Timer.OFF
    assert due(one, 0) == (IdSet("1"), False)
    one = sent(one, *due(one, 0))
    assert (one.done, one.freed, one.final) == (NO_RANKS, IdSet("1"), False)
    assert due(one, 0) == NOTHING
    assert due(complete(one, IdSet("0")), 0) == (IdSet("0"), True)


@pytest.mark.requirement("PR-32")
def test_a_duration_waits_until_the_timer_expires() -> None:
    one = running("0-3")
    assert code(expire_guard(one)) is InstanceCode.TimerOff
    one = complete(one, IdSet("0"), release_after=60.0)
    assert one.timer is Timer.ON
    assert due(one, 60.0) == NOTHING
    one = complete(one, IdSet("1"), release_after=60.0)
    assert expire_guard(one) is None
    one = expire(one)
    assert code(expire_guard(one)) is InstanceCode.TimerOff
    assert due(one, 60.0) == (IdSet("0-1"), False)
    one = complete(sent(one, *due(one, 60.0)), IdSet("2"), release_after=60.0)
    assert one.timer is Timer.EXPIRED
    assert due(one, 60.0) == (IdSet("2"), False)


def test_a_duration_may_be_less_than_a_second() -> None:
    assert complete(running("0-1"), IdSet("0"), release_after=0.5).timer is Timer.ON


def test_before_the_timer_expires_all_may_be_done() -> None:
    one = complete(running("0-1", closing=True), IdSet("0"), release_after=60.0)
    one = complete(one, IdSet("1"), release_after=60.0)
    assert due(one, 60.0) == (IdSet("0-1"), True)
    one = sent(one, *due(one, 60.0))
    assert one == Housekeeping(freed=IdSet("0-1"), closing=True, final=True)


@pytest.mark.requirement("PR-34")
@pytest.mark.parametrize("release_after", [None, 0, 60.0])
def test_final_is_sent_once_and_may_be_empty(release_after: float | None) -> None:
    one = hand_over(Housekeeping(freed=R), NO_RANKS, closing=True)
    assert due(one, release_after) == (NO_RANKS, True)
    one = sent(one, NO_RANKS, final=True)
    assert due(hand_over(one, NO_RANKS, closing=True), release_after) == NOTHING


def test_what_the_scheduler_dropped_is_not_given_back() -> None:
    one = abandon(complete(running("0-1"), IdSet("0-1"), IdSet("1"), 60.0))
    assert one == Housekeeping(failed=IdSet("1"), closing=True, final=True)
    assert due(one, 0) == NOTHING
