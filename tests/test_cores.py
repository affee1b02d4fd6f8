"""Sets of cores are sets: checked against sets of (rank, kind, id)."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partialrelease import NO_RANKS, IdSet
from partialrelease.cores import NO_CORES, CoreBooks, CoreSet

Model = frozenset[tuple[int, str, int]]

rows = st.lists(
    st.tuples(st.sampled_from(["core", "gpu"]), st.frozensets(st.integers(0, 4)), st.frozensets(st.integers(0, 4))),
    max_size=4,
)


def both(drawn: list[tuple[str, frozenset[int], frozenset[int]]]) -> tuple[CoreSet, Model]:
    cores = CoreSet.of((kind, IdSet(ids), IdSet(ranks)) for kind, ids, ranks in drawn)
    return cores, frozenset((rank, kind, id_) for kind, ids, ranks in drawn for id_ in ids for rank in ranks)


def members(cores: CoreSet) -> Model:
    listed = [(rank, kind, id_) for kind, ids, ranks in cores.rows for id_ in ids for rank in ranks]
    assert len(listed) == len(set(listed))
    return frozenset(listed)


@given(rows, rows, st.frozensets(st.integers(0, 5)))
def test_core_sets_are_sets(
    a: list[tuple[str, frozenset[int], frozenset[int]]],
    b: list[tuple[str, frozenset[int], frozenset[int]]],
    ranks: frozenset[int],
) -> None:
    (x, xs), (y, ys) = both(a), both(b)
    assert members(x) == xs
    assert members(x | y) == xs | ys
    assert members(x & y) == xs & ys
    assert members(x - y) == xs - ys
    assert members(x.on(IdSet(ranks))) == {member for member in xs if member[0] in ranks}
    assert set(x.ranks) == {rank for rank, _, _ in xs}
    assert bool(x) is bool(xs)
    assert (x == y) is (xs == ys)
    assert x - x == x & NO_CORES == NO_CORES
    assert (x - y) | (x & y) == x


@given(st.lists(st.tuples(st.booleans(), rows), max_size=5), rows)
def test_books_are_sets_that_change(
    changes: list[tuple[bool, list[tuple[str, frozenset[int], frozenset[int]]]]],
    asked: list[tuple[str, frozenset[int], frozenset[int]]],
) -> None:
    books, model = CoreBooks(), frozenset[tuple[int, str, int]]()
    for add, drawn in changes:
        cores, members_ = both(drawn)
        (books.add if add else books.remove)(cores)
        model = model | members_ if add else model - members_
    x, xs = both(asked)
    assert members(books.common(x)) == model & xs


@pytest.mark.parametrize(
    ("drawn", "shown"),
    [
        ([], ""),
        ([("core", {0, 1}, {0, 1, 2, 3})], "rank[0-3]/core[0-1]"),
        ([("core", {0}, {2}), ("gpu", {1, 3}, {2}), ("core", {0}, {3})], "rank[2-3]/core0 rank2/gpu[1,3]"),
    ],
)
def test_core_sets_are_shown_as_a_resource_summary_does(
    drawn: list[tuple[str, frozenset[int], frozenset[int]]], shown: str
) -> None:
    assert str(both(drawn)[0]) == shown


def test_a_thousand_ranks_of_which_no_two_are_alike_are_a_set_at_once() -> None:
    begin = time.process_time()
    cores = CoreSet.of([("core", IdSet(f"{n}-{n + 7}"), IdSet([n])) for n in range(1000)])
    assert time.process_time() - begin < 0.5
    assert len(cores.rows) > 1000


def test_four_billion_cores_on_four_billion_ranks_are_one_row() -> None:
    many = IdSet("0-4000000000")
    cores = CoreSet.of([("core", many, many)])
    less = cores - CoreSet.of([("core", IdSet("7"), IdSet("9"))])
    assert len(less.rows) == 2
    assert (less.ranks, (cores - cores).ranks) == (many, NO_RANKS)
