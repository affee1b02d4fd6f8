"""The housekeeping of one job: from the job's hand-overs to what the scheduler gets back. No I/O, no clock.

How it works. Ranks arrive in one or more hand-overs, and each runs the housekeeping script (*running*). When its script
has ended, well or badly, a rank is *done*; when it has been given to the scheduler it is *freed*. ``release_after``
says how long the ranks that are done wait for the others:

- ``None``: until no hand-over will come any more and all are done; then all go at once;
- ``0``: not at all, each goes as it completes;
- a duration, in seconds: a timer starts when the first completes. When it expires, all that are done go, and from then
  on each as it completes.

The job is *closing* when no further hand-over will come. The last fragment that goes to the scheduler says ``final``:
it goes when the job is closing and nothing runs. It may be empty, where the last ranks went before.

:func:`due` says what goes to the scheduler now; whoever has sent it says so with :func:`sent`.
"""

from __future__ import annotations

from enum import StrEnum

from attrs import evolve, frozen

from .idset import NO_RANKS, IdSet, in_words
from .instance_error import InstanceCode, InstanceError

__all__ = [
    "Housekeeping",
    "Timer",
    "abandon",
    "complete",
    "complete_guard",
    "due",
    "expire",
    "expire_guard",
    "hand_over",
    "sent",
]


class Timer(StrEnum):
    """The timer of a ``release_after`` that is a duration."""

    OFF = "off"
    ON = "on"
    EXPIRED = "expired"


@frozen
class Housekeeping:
    """The housekeeping of one job. Each rank that the job handed over is in one of ``running``, ``done``, ``freed``.

    ``failed``: the ranks whose script failed; they go back like the others. ``closing``: no further hand-over will
    come. ``final``: the scheduler has got the last fragment (or has dropped the job, and wants none).
    """

    running: IdSet = NO_RANKS
    done: IdSet = NO_RANKS
    freed: IdSet = NO_RANKS
    failed: IdSet = NO_RANKS
    timer: Timer = Timer.OFF
    closing: bool = False
    final: bool = False


def hand_over(housekeeping: Housekeeping, ranks: IdSet, closing: bool) -> Housekeeping:
    """The job hands ``ranks`` over, perhaps none; ``closing`` if no more will come."""
    closing = closing or housekeeping.closing
    return evolve(housekeeping, running=housekeeping.running | ranks, closing=closing)


# complete: the script has ended on some of the ranks where it runs, badly on ``failed``.


def complete_guard(housekeeping: Housekeeping, ranks: IdSet, failed: IdSet = NO_RANKS) -> InstanceError | None:
    if not ranks:
        return InstanceError(InstanceCode.NotRunning, "housekeeping completes on no rank")
    if missing := ranks - housekeeping.running:
        return InstanceError(InstanceCode.NotRunning, f"housekeeping does not run on {in_words(missing)}", missing)
    if missing := failed - ranks:
        return InstanceError(InstanceCode.NotCompleted, f"{in_words(missing)} failed but did not complete", missing)
    return None


def complete(
    housekeeping: Housekeeping, ranks: IdSet, failed: IdSet = NO_RANKS, release_after: float | None = None
) -> Housekeeping:
    starts = housekeeping.timer is Timer.OFF and release_after is not None and release_after > 0
    return evolve(
        housekeeping,
        running=housekeeping.running - ranks,
        done=housekeeping.done | ranks,
        failed=housekeeping.failed | failed,
        timer=Timer.ON if starts else housekeeping.timer,
    )


# expire: the timer is on.


def expire_guard(housekeeping: Housekeeping) -> InstanceError | None:
    if housekeeping.timer is not Timer.ON:
        return InstanceError(InstanceCode.TimerOff, f"the release timer expires, but it is {housekeeping.timer}")
    return None


def expire(housekeeping: Housekeeping) -> Housekeeping:
    return evolve(housekeeping, timer=Timer.EXPIRED)


# What goes to the scheduler.


def due(housekeeping: Housekeeping, release_after: float | None = None) -> tuple[IdSet, bool]:
    """The ranks that go to the scheduler now, and whether they are the last, ``final``, fragment."""
    if housekeeping.final:
        return NO_RANKS, False
    final = housekeeping.closing and not housekeeping.running
    at_once = release_after == 0 or housekeeping.timer is Timer.EXPIRED
    return (housekeeping.done if final or at_once else NO_RANKS), final


def sent(housekeeping: Housekeeping, ranks: IdSet, final: bool) -> Housekeeping:
    """The scheduler has got ``ranks``. With the ``final`` fragment housekeeping is through with the job."""
    return evolve(
        housekeeping,
        done=housekeeping.done - ranks,
        freed=housekeeping.freed | ranks,
        timer=Timer.OFF if final else housekeeping.timer,
        final=final,
    )


def abandon(housekeeping: Housekeeping) -> Housekeeping:
    """The scheduler has dropped the job: what is done is lost, and nothing goes back any more."""
    return evolve(housekeeping, done=NO_RANKS, timer=Timer.OFF, closing=True, final=True)
