"""The spec and the code are the same machine: their complete state graphs are equal, both ways."""

from pathlib import Path

import pytest
from state_graph import alphabet, differences, graph_of_python, graph_of_tlc

from partialrelease import LastRank

pytestmark = pytest.mark.slow

FIGURES = {  # states, transitions
    ("keep", (2, 1, 1)): (374, 5367),
    ("defer", (2, 1, 1)): (404, 5768),
    ("with-last", (2, 1, 1)): (404, 5768),
    ("keep", (3, 2, 1)): (7340, 170353),
}


@pytest.mark.parametrize(("last_rank", "size"), FIGURES)
def test_state_graphs_are_equal(last_rank: str, size: tuple[int, int, int], tmp_path: Path) -> None:
    events = alphabet(*size)
    first, ours = graph_of_python(size[0], LastRank(last_rank), events)
    assert graph_of_tlc(size, LastRank(last_rank), events, tmp_path) == (first, ours)
    figures = len(ours), sum(map(len, ours.values()))
    assert figures == FIGURES[last_rank, size]


def test_a_guard_that_one_side_lacks_is_a_difference(tmp_path: Path) -> None:
    """Python with last_rank=defer is the machine without one conjunct of partial-free's guard."""
    events = alphabet(1, 1, 0)
    _, ours = graph_of_python(1, LastRank.DEFER, events)
    _, theirs = graph_of_tlc((1, 1, 0), LastRank.KEEP, events, tmp_path)
    found = differences(events, ours, theirs)
    assert found
    assert any("PartialFree({0}): Python (" in difference and "TLA+ refuses" in difference for difference in found)
