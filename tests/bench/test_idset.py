"""IdSet against ClusterShell's RangeSet, on the ranks of a machine of 11,136 nodes."""

from __future__ import annotations

from functools import partial
from operator import sub
from typing import Any, Final

import pytest

from partialrelease import IdSet

from .conftest import Bench

_COUNT: Final = 11136
_SCATTERED: Final = ",".join(map(str, range(0, 2 * _COUNT, 2)))
_CONTIGUOUS: Final = f"0-{_COUNT - 1}"


@pytest.fixture
def range_set() -> Any:
    return pytest.importorskip("ClusterShell.RangeSet", reason="ClusterShell is not installed").RangeSet


@pytest.mark.parametrize("what", ["parse", "format", "parse and format"])
@pytest.mark.parametrize(
    ("ids", "text", "least"), [("every second id", _SCATTERED, 10), ("contiguous", _CONTIGUOUS, 1000)]
)
def test_text(bench: Bench, range_set: Any, ids: str, text: str, least: float, what: str) -> None:
    def work(kind: Any) -> Any:
        if what == "parse":
            return partial(kind, text)
        return partial(str, kind(text)) if what == "format" else lambda: str(kind(text))

    assert str(IdSet(text)) == str(range_set(text)) == text
    bench.faster(f"{what} 11,136 ids, {ids}: IdSet, RangeSet", work(IdSet), work(range_set), least)


@pytest.mark.parametrize("other", ["RangeSet", "frozenset"])
def test_difference(bench: Bench, range_set: Any, other: str) -> None:
    ours = IdSet(_SCATTERED), IdSet(_CONTIGUOUS)
    theirs = [range_set(str(ids)) if other == "RangeSet" else frozenset(ids) for ids in ours]
    assert list(sub(*ours)) == sorted(map(int, sub(*theirs)))
    bench.faster(f"every second id - contiguous: IdSet, {other}", partial(sub, *ours), partial(sub, *theirs))
