"""The strategies make what they say, all of it, and shrink; their examples work; without Hypothesis they say so."""

import doctest
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import Phase as Find
from hypothesis import strategies as st

from partialrelease import ALL_RANKS, IdSet, Job, LastRank, PartialFree, Phase, apply, strategies
from partialrelease.strategies import Log, idsets, legal_logs, planted_logs, probes, subsets


def test_the_examples_in_the_docstrings_work() -> None:
    tried = doctest.testmod(strategies, extraglobs={"given": given})
    assert (tried.failed, tried.attempted >= 14) == (0, True)


def test_without_hypothesis_the_error_says_what_to_install() -> None:
    code = "import sys; sys.modules['hypothesis'] = None; import partialrelease.strategies"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == (
        "ImportError: partialrelease.strategies needs hypothesis: pip install 'partialrelease[hypothesis]'"
    )


LOOK = settings(max_examples=2000, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
ANY = settings(LOOK, phases=[Find.generate])  # the first, not the smallest


@pytest.mark.parametrize(
    "kind",
    [
        lambda ranks: not ranks,
        lambda ranks: len(ranks) == 1,
        lambda ranks: len(ranks) > 2000 and len(list(ranks.runs())) == 1,
        lambda ranks: len(ranks) > 500 and len(list(ranks.runs())) == len(ranks),
        lambda ranks: 20 < len(list(ranks.runs())) < len(ranks),
    ],
    ids=["none", "one", "contiguous", "scattered", "fragmented"],
)
def test_sets_of_ranks_of_all_kinds_come_up(kind) -> None:  # type: ignore[no-untyped-def]
    find(idsets(), kind, settings=ANY)


@given(st.integers(0, 70), st.integers(0, 70), st.data())
def test_sets_of_ranks_have_the_size_that_they_should(one: int, other: int, data: st.DataObject) -> None:
    low, high = sorted([one, other])
    assert low <= len(data.draw(idsets(min_size=low, max_size=high))) <= high


@given(idsets(max_size=200), st.data())
def test_subsets_are_subsets(ranks: IdSet, data: st.DataObject) -> None:
    assert data.draw(subsets(ranks)) <= ranks
    some = data.draw(subsets(ranks, min_size=1))
    assert some <= ranks
    assert some or not ranks


@given(legal_logs())
def test_legal_logs_are_legal(log: Log) -> None:
    job = Job(log.last_rank)
    for event in log.events:
        job = apply(job, event)  # raises nothing


@pytest.mark.parametrize("last_rank", LastRank)
@given(st.data())
def test_logs_are_what_was_asked_for(last_rank: LastRank, data: st.DataObject) -> None:
    log = data.draw(legal_logs(ranks=st.just(IdSet("3,5")), last_rank=last_rank, complete=True))
    job = Job(last_rank)
    for event in log.events:
        job = apply(job, event)
    assert log.last_rank is last_rank
    assert (job.phase, job.held) == (Phase.INACTIVE, IdSet())
    assert job.allocation in (IdSet(), IdSet("3,5"))


def most(log: Log, what: str) -> int:
    job, count = Job(log.last_rank), 0
    for event in log.events:
        job = apply(job, event)
        count = max(count, len(job.holders) if what == "holders" else len(list(job.held.runs())))
    return count


def test_logs_with_many_holders_and_fragmented_ranks_come_up() -> None:
    find(legal_logs(), lambda log: most(log, "holders") >= 6, settings=ANY)
    find(legal_logs(), lambda log: sum(isinstance(e, PartialFree) for e in log.events) >= 4, settings=ANY)
    find(legal_logs(ranks=idsets(min_size=50)), lambda log: most(log, "runs") > 20, settings=ANY)


@pytest.mark.slow
def test_logs_shrink_to_what_matters() -> None:
    shortest = find(legal_logs(), lambda log: any(isinstance(e, PartialFree) for e in log.events), settings=LOOK)
    assert len(shortest.events) <= 8  # such as submit, alloc, release 0, finish, partial-free 0
    assert max(len(getattr(event, "ranks", None) or ()) for event in shortest.events if event.name == "alloc") <= 2


def test_planted_logs_shrink_to_what_matters() -> None:
    planted = find(planted_logs(), lambda planted: planted.code.value == "ReleasedWhileReferenced", settings=LOOK)
    assert len(planted.log.events) == planted.line <= 8


@given(legal_logs(ranks=idsets(max_size=20, min_size=1)))
def test_probes_are_the_same_for_the_same_state_and_name_every_event(log: Log) -> None:
    job = Job(log.last_rank)
    for event in log.events:
        job = apply(job, event)
    assert probes(job) == probes(job)
    assert len({event.name for event in probes(job)}) == 27


@given(subsets(ALL_RANKS))
def test_subsets_of_all_ranks_that_there_could_be_are_small(ranks: IdSet) -> None:
    assert ranks <= ALL_RANKS
