"""Properties that relate two logs, or two ways to replay one: what must not make a difference, and what must."""

from __future__ import annotations

import io
from collections.abc import Iterable
from functools import reduce

import pytest
from attrs import evolve
from hypothesis import assume, given
from hypothesis import strategies as st
from oracle import Oracle

from partialrelease import (
    ALL_RANKS,
    FORMS,
    Alloc,
    Code,
    Entry,
    EpilogStart,
    Event,
    Holder,
    IdSet,
    Job,
    JobException,
    LastRank,
    Malformed,
    Memo,
    PartialFree,
    Phase,
    Release,
    ResourceSet,
    Unknown,
    apply,
    check_entries,
    decide,
    effect,
    guard,
    make_event,
    read_log,
    to_context,
    write_log,
)
from partialrelease.strategies import Log, Planted, idsets, legal_logs, planted_logs, resource_sets, subsets

ANY_LOGS = legal_logs() | planted_logs().map(lambda planted: planted.log)
FEW_RANKS = idsets(min_size=1, max_size=40)


def replay(events: Iterable[Event], begin: Job) -> Job:
    """The job after these events, whether they may happen or not."""
    return reduce(effect, events, begin)


def verdicts(events: Iterable[Event], begin: Job) -> list[Code | None]:
    """What each event is: legal, or which violation; going on in any case."""
    said: list[Code | None] = []
    job = begin
    for event in events:
        violation = guard(job, event)
        said.append(violation.code if violation else None)
        job = effect(job, event)
    return said


def found(entries: Iterable[Entry], last_rank: LastRank) -> list[tuple[int, str]]:
    (report,) = check_entries(entries, last_rank=last_rank)
    return [(finding.line, finding.violation.code.value) for finding in report.findings]


# -- renaming ranks commutes with everything --


def renamed(ranks: IdSet, names: dict[int, int]) -> IdSet:
    return ranks if ranks == ALL_RANKS else IdSet(sorted(names[rank] for rank in ranks))


def with_renamed(event: Event, names: dict[int, int]) -> Event:
    if isinstance(event, Malformed):
        return evolve(event, meant=event.meant and with_renamed(event.meant, names))
    if isinstance(event, Alloc | Release | EpilogStart | PartialFree) and event.ranks is not None:
        return evolve(event, ranks=renamed(event.ranks, names))
    return event


def job_with_renamed(job: Job, names: dict[int, int]) -> Job:
    actions = tuple(Holder(h.kind, h.description, renamed(h.ranks, names)) for h in job.actions)
    return evolve(
        job,
        actions=actions,
        exec_ranks=renamed(job.exec_ranks, names),
        allocation=renamed(job.allocation, names),
        held=renamed(job.held, names),
        released=renamed(job.released, names),
    )


def names_of(data: st.DataObject, events: Iterable[Event], *, ascending: bool) -> dict[int, int]:
    meant = [event.meant if isinstance(event, Malformed) else event for event in events]
    sets = [ranks for event in meant if (ranks := getattr(event, "ranks", None)) and ranks != ALL_RANKS]
    ranks = sorted(set().union(*sets))
    new = sorted(data.draw(st.sets(st.integers(0, 5000), min_size=len(ranks), max_size=len(ranks)), "new names"))
    return dict(zip(ranks, new if ascending else data.draw(st.permutations(new), "order"), strict=True))


@given(legal_logs(ranks=FEW_RANKS) | planted_logs(ranks=FEW_RANKS).map(lambda planted: planted.log), st.data())
def test_renaming_ranks_commutes_with_everything(log: Log, data: st.DataObject) -> None:
    names = names_of(data, log.events, ascending=False)
    events = [with_renamed(event, names) for event in log.events]
    begin = Job(log.last_rank)
    assert verdicts(events, begin) == verdicts(log.events, begin)
    assert replay(events, begin) == job_with_renamed(replay(log.events, begin), names)


@given(legal_logs(ranks=FEW_RANKS), st.data())
def test_renaming_ranks_in_their_order_commutes_with_decide(log: Log, data: st.DataObject) -> None:
    names = names_of(data, log.events, ascending=True)
    job = replay(log.events, Job(log.last_rank))
    decided, then = decide(job), decide(job_with_renamed(job, names))
    assert then == (decided and with_renamed(decided, names))


# -- two independent drops commute --


@st.composite
def drops(draw: st.DrawFn) -> tuple[Job, Release, Release]:
    """A job with several holders, and drops by two of them."""
    log = draw(legal_logs(complete=False).filter(lambda log: "epilog-start" in {e.name for e in log.events}))
    job = replay(log.events, Job(log.last_rank))
    assume(job.allocation and job.phase is Phase.CLEANUP)
    for name in ("first", "second"):
        job = apply(job, EpilogStart(name, draw(st.just(ALL_RANKS) | subsets(job.held))))
    first, second = job.actions[-2:]
    some = [st.just(ALL_RANKS) | subsets(holder.ranks) for holder in (first, second)]
    return job, Release(draw(some[0]), False, "first"), Release(draw(some[1]), False, "second")


@given(drops())
def test_two_independent_drops_commute(two: tuple[Job, Release, Release]) -> None:
    job, one, other = two
    assert apply(apply(job, one), other) == apply(apply(job, other), one)


# -- replaying a prefix, then the rest, is replaying the whole --


@given(ANY_LOGS, st.data())
def test_replaying_a_prefix_then_the_rest_is_replaying_the_whole(log: Log, data: st.DataObject) -> None:
    """The rest from entries that were written and read again: nothing else is state."""
    cut = data.draw(st.integers(0, len(log.events)))
    prefix, rest = log.events[:cut], log.events[cut:]
    again = [make_event(e.name, to_context(e), getattr(e, "ranks", ALL_RANKS) or ALL_RANKS) for e in rest]
    begin = Job(log.last_rank)
    assert replay(again, replay(prefix, begin)) == replay(log.events, begin)
    assert verdicts(again, replay(prefix, begin)) == verdicts(log.events, begin)[cut:]


@given(st.lists(ANY_LOGS, min_size=1, max_size=3), st.data())
def test_checking_jobs_side_by_side_finds_what_checking_each_alone_finds(logs: list[Log], data: st.DataObject) -> None:
    logs = [evolve(log, last_rank=logs[0].last_rank) for log in logs]
    entries = [list(log.entries(job)) for job, log in enumerate(logs)]
    mixed: list[Entry] = []
    while any(entries):
        mixed.append(data.draw(st.sampled_from([rest for rest in entries if rest])).pop(0))
    reports = {report.job: report for report in check_entries(mixed, last_rank=logs[0].last_rank)}
    for job, log in enumerate(logs):
        begin = Job(log.last_rank)
        assert reports[job].state == replay(log.events, begin)
        codes = [code for code in verdicts(log.events, begin) if code]
        assert [finding.violation.code for finding in reports[job].findings] == codes


# -- splitting a release into parts changes nothing but the number of events --


@given(legal_logs(), st.data())
def test_splitting_a_release_into_parts_changes_nothing_but_the_number_of_events(log: Log, data: st.DataObject) -> None:
    job = Job(log.last_rank)
    for event in log.events:
        after = apply(job, event)
        if isinstance(event, Release | PartialFree) and not getattr(event, "final", False):
            first = data.draw(subsets(event.ranks if event.ranks != ALL_RANKS else job.held))
            if isinstance(event, PartialFree):
                parts = [part for part in (first, event.ranks - first) if part]
            else:
                has = job.exec_ranks if event.description is None else _holder(job, event.description).ranks
                parts = [first & has, event.ranks if event.ranks == ALL_RANKS else event.ranks - first]
            assert reduce(apply, [evolve(event, ranks=part) for part in parts], job) == after
        job = after


def _holder(job: Job, description: str) -> Holder:
    (holder,) = [h for h in job.actions if h.kind.value == "epilog" and h.description == description]
    return holder


# -- writing and reading again gives the same verdict, in each form --


@pytest.mark.parametrize("form", FORMS)
@given(log=ANY_LOGS)
def test_writing_and_reading_a_log_gives_the_same_verdict(form: str, log: Log) -> None:
    expected = found(log.entries(7), log.last_rank)
    r = log.r()
    resources = ResourceSet.parse(r.encode()) if r else None
    stream = io.StringIO()
    write_log(log.entries(7), stream, form)
    again = list(read_log("log", io.BytesIO(stream.getvalue().encode()), resources=resources))
    assert found(again, log.last_rank) == expected
    assert [_meant(entry.event) for entry in again] == [_meant(event) for event in log.events]


def _meant(event: Event) -> Event:
    """What is read of an event that breaks RFC 21 (such as a ``partial-free`` of no ranks) is marked as that."""
    return event.meant if isinstance(event, Malformed) and event.meant is not None else event


@given(ANY_LOGS)
def test_the_text_of_a_log_and_of_its_r_are_read_as_that_log(log: Log) -> None:
    r = log.r()
    resources = ResourceSet.parse(r.encode()) if r else None
    again = read_log("log", io.BytesIO(log.eventlog().encode()), resources=resources)
    assert list(again) == [evolve_resources(entry, resources) for entry in log.entries()]


def evolve_resources(entry: Entry, resources: ResourceSet | None) -> Entry:
    event = entry.event.meant if isinstance(entry.event, Malformed) else entry.event
    return entry._replace(resources=resources) if isinstance(event, Alloc) else entry


@given(resource_sets())
def test_any_r_is_read_with_its_ranks_and_hosts(text: str) -> None:
    r = ResourceSet.parse(text.encode())
    hosts = r.hosts()
    assert r.ranks
    assert hosts is None or str(hosts) == str(ResourceSet(r.ranks, (f"node[{r.ranks}]",)).hosts())


# -- what must make no difference --


@given(ANY_LOGS, st.data())
def test_adding_unknown_events_changes_nothing(log: Log, data: st.DataObject) -> None:
    begin = Job(log.last_rank)
    said = verdicts(log.events, begin)
    noise = st.sampled_from([Unknown("debug.x"), Unknown("epilog"), Memo(), JobException("note", 1)])
    job = begin
    for event, code in zip(log.events, said, strict=True):
        violation = guard(job, event)
        assert (violation and violation.code) == code
        job = effect(job, event)
        for more in data.draw(st.lists(noise, max_size=2)) if job.phase is not Phase.INACTIVE else []:
            job = apply(job, more)
    assert job == replay(log.events, begin)


@given(ANY_LOGS)
def test_an_epilog_that_says_all_is_one_that_says_nothing(log: Log) -> None:
    def other(event: Event) -> Event:
        if not isinstance(event, EpilogStart) or event.ranks not in (None, ALL_RANKS):
            return event
        return evolve(event, ranks=ALL_RANKS if event.ranks is None else None)

    events, begin = [other(event) for event in log.events], Job(log.last_rank)
    assert verdicts(events, begin) == verdicts(log.events, begin)
    assert replay(events, begin) == replay(log.events, begin)


def without_extensions(events: Iterable[Event]) -> list[Event]:
    """What an older job manager makes of them: it knows neither events nor keys."""
    known = [e for e in events if not isinstance(e, PartialFree)]
    known = [e for e in known if not isinstance(e, Release) or e.description is None]
    return [evolve(e, ranks=None) if isinstance(e, EpilogStart) else e for e in known]


@given(legal_logs())
def test_a_legal_log_stays_safe_when_every_extension_is_removed(log: Log) -> None:
    """But for a scheduler that restarts while an epilog is active: that then has ranks to lose."""
    codes = set(verdicts(without_extensions(log.events), Job(log.last_rank))) - {None}
    loses = any(isinstance(e, JobException) and (e.type, e.severity) == ("scheduler-restart", 0) for e in log.events)
    assert codes <= ({Code.ResourcesLost} if loses else set())


# -- what must make one --


@given(planted_logs())
def test_check_finds_a_planted_violation_at_its_line_and_nothing_else(planted: Planted) -> None:
    log = planted.log
    assert found(log.entries(), log.last_rank) == [(planted.line, planted.code.value)]
    assert found(log.entries(1), log.last_rank) == [(planted.line, planted.code.value)]


@pytest.mark.parametrize("code", Code)
@given(st.data())
def test_a_violation_of_each_code_can_be_planted(code: Code, data: st.DataObject) -> None:
    """And the oracle agrees that it is one, and that nothing before it is."""
    planted = data.draw(planted_logs(code))
    oracle = Oracle(planted.log.last_rank.value)
    said = []
    for event in planted.log.events[: planted.line]:
        entry = {"name": event.name, "context": to_context(event)}
        r = list(event.ranks) if isinstance(event, Alloc) else []
        said.append(oracle.verdict(entry, r))
        if said[-1] is None:
            oracle.happen(entry, r)
    assert said == [*[None] * (planted.line - 1), code.value]
