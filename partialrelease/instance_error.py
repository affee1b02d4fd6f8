"""What the instance and its parts say of an input that may not happen now."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from .idset import NO_RANKS, IdSet

__all__ = ["InstanceCode", "InstanceError"]


class InstanceCode(StrEnum):
    """Why an input was refused."""

    NotRunning = "NotRunning"  # ranks complete whose housekeeping does not run
    NotCompleted = "NotCompleted"  # ranks failed that are not among those that completed
    TimerOff = "TimerOff"  # a timer expires that is not on
    NotFree = "NotFree"  # the scheduler grants ranks that it believes allocated
    NotAllocated = "NotAllocated"  # ranks go back that the scheduler does not believe allocated to that job
    NoPartialOk = "NoPartialOk"  # a job is half freed, and the scheduler could not be told of it


class InstanceError(Exception):
    """An input that may not happen now. ``str()`` says why in a user's words; ``ranks`` are the ranks concerned."""

    def __init__(self, code: InstanceCode, message: str, ranks: IdSet = NO_RANKS) -> None:
        super().__init__(code, message)
        self.code: Final = code
        self.message: Final = message
        self.ranks: Final = ranks

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"
