"""TLC follows logs through tla/PartialRelease.tla, and stops where check reports the first violation."""

import io
import json
import shutil
from collections import Counter
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from random import Random
from typing import Any

import pytest
from attrs import evolve
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from partialrelease import (
    ALL_RANKS,
    NO_RANKS,
    Alloc,
    Clean,
    Depend,
    Entry,
    EpilogFinish,
    EpilogStart,
    Event,
    Finish,
    FluxRestart,
    Free,
    HolderKind,
    IdSet,
    Invalidate,
    Job,
    JobException,
    LastRank,
    Malformed,
    Memo,
    PartialFree,
    Priority,
    PrologFinish,
    PrologStart,
    Release,
    Start,
    Submit,
    Unknown,
    Urgency,
    Validate,
    effect,
    guard,
    read_log,
    tlc,
    trace_check,
    write_log,
)
from partialrelease import Phase as JobPhase
from partialrelease.resources import ResourceSet
from partialrelease.trace_check import (
    Answer,
    TooLongError,
    Trace,
    answer_lines,
    batches,
    behaviour,
    check_traces,
    traces,
)

pytestmark = pytest.mark.slow  # TLC runs

DATA = Path(__file__).parent / "data"
LOGS = DATA / "eventlogs"
JOURNAL = DATA / "journal-1024-ranks.ndjson"

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def no_tlc(monkeypatch: pytest.MonkeyPatch) -> None:
    def runs(*_: object, **__: object) -> None:
        raise tlc.TLCError("no TLC here")

    monkeypatch.setattr(trace_check, "run", runs)


def entries(events: list[Event], job: int | None = None) -> list[Entry]:
    return [Entry(line, job, float(line), event) for line, event in enumerate(events, 1)]


BEGIN: list[Event] = [Submit(), Validate(), Depend(), Priority()]


def job(*more: Event, ranks: str = "0-3") -> list[Event]:
    return [*BEGIN, Alloc(IdSet(ranks)), Start(), Finish(), *more]


# -- real logs --


def test_each_real_log_is_accepted_or_stops_where_check_finds_the_first_violation(run: Run) -> None:
    logs = [*sorted(LOGS.glob("*.eventlog")), *sorted(LOGS.glob("*.txt"))]
    status, out, err = run("trace-check", "--format", "json", *logs)
    found = [json.loads(line) for line in out.splitlines()]
    assert (status, err) == (1, "")
    assert [answer["source"] for answer in found] == [str(log) for log in logs]
    assert {
        Path(answer["source"]).name: (answer["line"], answer["event"]) for answer in found if not answer["accepted"]
    } == {
        "H-free-context.eventlog": (10, "free"),
        "dup-description.eventlog": (9, "epilog-start"),
        "unmatched-finish.eventlog": (10, "epilog-finish"),
    }
    run("check", "--format", "json", *logs)
    assert all(answer["agreed"] for answer in found)
    _, out, _ = run("check", "--format", "json", *logs)
    for answer, checked in zip(found, map(json.loads, out.splitlines()), strict=True):
        first = checked["violations"][0] if checked["violations"] else None
        assert answer["events"] == checked["events"]
        assert answer["line"] == (first and first["line"])
        assert answer["check"] == (first and {key: first[key] for key in ("line", "code", "message")})


def test_a_journal_goes_in_one_run_and_says_how_many_behaviours_it_has(run: Run) -> None:
    late = b'{"id":38436601856,"timestamp":1796135999.0,"name":"free"}\n'
    status, out, _ = run("trace-check", "-", stdin=JOURNAL.read_bytes() + late)
    lines = out.splitlines()
    assert status == 0  # the job is long forgotten: what follows its clean is a fragment
    assert len(lines) == 501
    assert lines[-1] == "500 jobs, 6605 events: all accepted (75 different behaviours in 1 run of TLC)"
    assert "<stdin> job 38436601856: accepted (11 events)" in lines


def test_jobs_that_began_before_the_journal_are_left_out_and_counted(run: Run) -> None:
    journal = b"".join(JOURNAL.read_bytes().splitlines(keepends=True)[1000:1400])
    status, out, err = run("trace-check", "-", stdin=journal)
    jobs = {json.loads(line)["id"] for line in journal.splitlines()}
    whole = {json.loads(line)["id"] for line in journal.splitlines() if json.loads(line)["name"] == "submit"}
    assert status == 0
    assert len(out.splitlines()) == len(whole) + 1
    assert err == f"warning: <stdin>: left out what began before the log: {len(jobs - whole)} jobs\n"


def test_a_journal_of_whose_jobs_none_can_be_followed_is_refused(run: Run, no_tlc: None) -> None:
    status, out, err = run("trace-check", "-", stdin=JOURNAL.read_bytes().splitlines(keepends=True)[-1])
    assert (status, out) == (2, "")
    assert err == "error: <stdin>: all of its jobs began before it; trace-check needs one that begins with submit\n"


# -- classes of ranks --


def test_ranks_that_the_log_names_together_are_one_class() -> None:
    even = IdSet(range(0, 11136, 2))
    every = IdSet("0-11135")
    seen = behaviour(
        [
            *job(EpilogStart("a"), Release(even, False, "a"), PartialFree(even & IdSet("0-999")), ranks="0-11135"),
            Release(IdSet("11130-20000"), False, "a"),
        ]
    )
    first, rest, late = even & IdSet("0-999"), even - IdSet("0-999"), IdSet("11130-11135")
    outside = IdSet("11136-20000")
    assert seen.classes == (first, every - even - late, rest - late, late & even, late - even, outside)
    assert seen.actions[-3:] == (
        '[action |-> "Release", epilog |-> "e1", ranks |-> {1} \\cup 3..4]',
        '[action |-> "PartialFree", ranks |-> {1}]',
        '[action |-> "Release", epilog |-> "e1", ranks |-> 4..6]',
    )
    assert seen.actions[4] == '[action |-> "Alloc", ranks |-> 1..5]'


def test_of_an_r_that_is_not_known_one_class_is_all_that_was_not_named() -> None:
    seen = behaviour([*BEGIN, Alloc(), EpilogStart("a", IdSet("3")), Release(ALL_RANKS, True), PartialFree(ALL_RANKS)])
    assert seen.classes == (ALL_RANKS - IdSet("3"), IdSet("3"))
    assert seen.actions[4:] == (
        '[action |-> "Alloc", ranks |-> 1..2]',
        '[action |-> "EpilogStart", epilog |-> "e1", ranks |-> {2}]',
        '[action |-> "ExecRelease", ranks |-> All, final |-> TRUE]',
        '[action |-> "PartialFree", ranks |-> 1..2]',
    )


@given(st.lists(st.frozensets(st.integers(0, 40))))
def test_classes_tell_ranks_apart_as_the_sets_do(sets: list[frozenset[int]]) -> None:
    seen = behaviour([PartialFree(IdSet(ranks)) for ranks in sets])
    by_sets: dict[tuple[bool, ...], set[int]] = {}
    for rank in sorted(frozenset().union(*sets)):
        by_sets.setdefault(tuple(rank in ranks for ranks in sets), set()).add(rank)
    assert [set(ranks) for ranks in seen.classes] == list(by_sets.values())


# -- made-up logs --


@st.composite
def lives(draw: st.DrawFn, seen: Counter[object]) -> list[Event]:
    """A legal walk, on up to thousands of ranks; each other one is then broken by an edit.

    ``seen``: how often each violation of each event has been the first; the edit is one that makes a rare one.
    """
    by = draw(st.randoms(use_true_random=True))  # seeded; what Hypothesis draws itself is mostly small
    size = by.choice([1, 2, 5, 1000, 11136])
    allocation = IdSet(range(by.choice([0, 7]), size + 7))
    cut = IdSet(range(by.randrange(size + 7)))
    sets = [NO_RANKS, allocation, allocation & cut, allocation - cut, IdSet([allocation.min()])]
    sets.append(allocation & IdSet(range(0, size + 7, 3)))

    def likely(state: Job) -> list[Event]:
        some = by.choice(sets)
        events: list[Event] = [
            Alloc(allocation),
            Start(),
            Finish(),
            Release(state.exec_ranks & some),
            Release(by.choice([ALL_RANKS, state.exec_ranks]), True),
            PartialFree(state.releasable & some),
            PartialFree(state.releasable - some),
            *[Free(), Clean()] * 3,
        ]
        if by.random() < 0.3 and len(state.actions) < 3:
            events += [EpilogStart(by.choice("abc"), ranks) for ranks in (None, ALL_RANKS, state.held & some)]
        if state.phase is not JobPhase.CLEANUP and by.random() < 0.5:
            events.append(PrologStart(by.choice("ap")))
        for holder in state.actions:
            if holder.kind is HolderKind.EPILOG:
                events += [Release(ranks, False, holder.description) for ranks in (holder.ranks & some, ALL_RANKS)]
        if by.random() < 0.6:
            finish = by.choice([EpilogFinish, PrologFinish])
            events += [finish(holder.description) for holder in state.actions]
        return events

    def unlikely() -> list[Event]:
        fatal = JobException(by.choice(["cancel", "scheduler-restart"]), by.randrange(2))
        return [Memo(), Unknown("x"), Urgency(), FluxRestart(), fatal, Priority(), Depend(), Validate(), Invalidate()]

    life: list[Event] = [Submit()]
    state = effect(Job(), life[0])
    begin: list[Event] = [Validate(), Depend(), Priority()]
    for _ in range(by.randrange(1, 40)):
        events = begin[:1] or (unlikely() if by.random() < 0.1 else likely(state))
        del begin[:1]
        possible = [event for event in events if guard(state, event) is None]
        if by.random() < 0.9:  # most events matter
            possible = [event for event in possible if effect(state, event) != state]
        if possible:
            life.append(by.choice(possible))
            state = effect(state, life[-1])
    if draw(st.booleans()):
        return life
    broken: dict[object, list[Event]] = {}
    for _ in range(30):
        each = edited(by, life, [*sets, IdSet("20000")])
        (trace,) = traces("log", entries(each))
        for finding in trace.report.findings[:1]:
            broken[finding.violation.code, type(finding.violation.event)] = each
    if not broken:
        return life
    rarest = min(broken, key=lambda violation: seen[violation])
    seen[rarest] += 1
    return broken[rarest]


def edited(by: Random, life: list[Event], sets: list[IdSet]) -> list[Event]:
    """The life with one event left out, doubled, moved, or on other ranks. It still begins with submit."""
    ranked = [n for n, event in enumerate(life) if isinstance(event, Release | EpilogStart | PartialFree)]
    edit = by.choice(["leave out", "double", "move", "change ranks"])
    if edit == "change ranks" and ranked:
        at = by.choice(ranked)
        event: Any = life[at]
        return [*life[:at], evolve(event, ranks=by.choice([ranks for ranks in sets if ranks])), *life[at + 1 :]]
    if edit == "double":
        at = by.randrange(len(life))
        return [*life[: at + 1], *life[at:]]
    at = by.randrange(1, len(life))
    rest = [*life[:at], *life[at + 1 :]]
    if edit == "move":
        rest.insert(by.randrange(1, len(rest) + 1), life[at])
    return rest


@pytest.fixture(scope="module")
def made_up() -> list[Trace]:
    """200 logs, written as a journal in which ten jobs at a time are active, and read again."""
    made: list[list[Event]] = []

    @settings(max_examples=200, phases=[Phase.generate], database=None, suppress_health_check=list(HealthCheck))
    @given(lives(Counter()))
    def make(life: list[Event]) -> None:
        made.append(life)

    make()
    jobs = [
        [
            Entry(0, number, n + 1.0, e, ResourceSet(e.ranks) if isinstance(e, Alloc) else None)
            for n, e in enumerate(life)
        ]
        for number, life in enumerate(made)
    ]
    stream = io.StringIO()
    for first in range(0, len(jobs), 10):
        rows = zip_longest(*jobs[first : first + 10])
        write_log((entry for row in rows for entry in row if entry), stream, "journal")
    read = list(read_log("made-up", io.BytesIO(stream.getvalue().encode())))
    found = sorted(traces("made-up", read), key=lambda trace: trace.report.job or 0)
    assert [len(trace.entries) for trace in found] == [len(life) for life in made]
    return found


def disagreements(jobs: list[Trace]) -> list[Answer]:
    answers, _ = check_traces(jobs)
    return [answer for answer in answers if not answer.agreed]


def test_tlc_and_check_agree_on_200_made_up_logs_in_one_run(made_up: list[Trace]) -> None:
    assert len(made_up) == 200
    assert [list(answer_lines(answer)) for answer in disagreements(made_up)] == []
    codes = [trace.report.findings[0].violation.code for trace in made_up if trace.report.findings]
    assert 60 <= len(codes) <= 140
    assert len(set(codes)) >= 8
    accepted = [trace for trace in made_up if not trace.report.findings]
    events = {type(entry.event) for trace in accepted for entry in trace.entries}
    assert {Release, PartialFree, Free, Clean, PrologFinish, EpilogFinish} <= events
    assert any(len(behaviour([e.event for e in trace.entries]).classes) >= 4 for trace in accepted)


@pytest.mark.parametrize(
    ("conjunct", "instead"),
    [
        ("  /\\ ranks # All => ranks \\subseteq held\n", ""),
        ('  /\\ LastRank = "keep" => ranks # held\n', ""),
        ("  /\\ e \\notin DOMAIN actions\n", ""),
        ("IF allocation = {} THEN Ranks ELSE held", "held"),
    ],
)
def test_a_spec_that_says_something_else_is_noticed(
    made_up: list[Trace], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, conjunct: str, instead: str
) -> None:
    shutil.copytree(tlc.spec_folder(), tmp_path, dirs_exist_ok=True)
    spec = tmp_path / "PartialRelease.tla"
    text = spec.read_text()
    assert conjunct in text
    spec.write_text(text.replace(conjunct, instead))
    monkeypatch.setattr(tlc, "spec_folder", lambda: tmp_path)
    assert disagreements(made_up)


def test_classes_that_do_not_tell_ranks_apart_are_noticed(
    made_up: list[Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = trace_check._classes
    monkeypatch.setattr(trace_check, "_classes", lambda sets: whole(list(sets)[:1]))
    assert disagreements(made_up)


def test_the_last_rank_may_go_where_the_setting_lets_it() -> None:
    life = job(Release(ALL_RANKS, True), EpilogStart("a", NO_RANKS), PartialFree(IdSet("0-3")))
    for last_rank in (LastRank.KEEP, LastRank.DEFER):
        (answer,), behaviours = check_traces(list(traces("log", entries(life), last_rank)), last_rank)
        assert (answer.agreed, behaviours, answer.stopped is None) == (True, 1, last_rank is LastRank.DEFER)


# -- what is said --


def test_a_log_that_stops_says_where_why_and_what_tlc_saw(run: Run) -> None:
    log = LOGS / "unmatched-finish.eventlog"
    assert run("trace-check", log) == (
        1,
        f"{log}: stops at line 10: epilog-finish (event 10 of 12), which the spec does not allow in this state\n"
        "  check says: UnknownHolder: epilog 'b' finishes but is not active (active: epilog 'a'): it ends no hold\n"
        '  in TLA+: [action |-> "EpilogFinish", epilog |-> "e2"]\n'
        "      1 = ranks 0-1\n"
        "      e1 = epilog 'a'\n"
        "      e2 = epilog 'b'\n",
        "",
    )


def answer(events: list[Event], reached: int) -> Answer:
    (trace,) = traces("log", entries(events))
    return Answer(trace, behaviour(events), reached)


def test_classes_and_holders_are_explained_but_not_without_end() -> None:
    life = [*job(Release(ALL_RANKS, True), ranks="0-29"), *(EpilogStart(f"x{n}", IdSet([n])) for n in range(30))]
    said = list(answer_lines(answer(life, len(life)), explained=True))
    assert said[:3] == ["log: accepted (38 events)", "      1 = rank 0", "      2 = rank 1"]
    assert said[21:23] == ["      ... (30 classes in all)", "      e1 = epilog 'x0'"]
    assert said[-1] == "      ... (30 epilogs in all)"
    assert list(answer_lines(answer(life, len(life)))) == said[:1]
    unknown = answer([*BEGIN, Alloc(), PrologStart("p")], 6)
    assert list(answer_lines(unknown, explained=True))[1:] == [
        "      1 = all other ranks (which ones is not known: no R)",
        "      p1 = prolog 'p'",
    ]


def test_a_malformed_event_has_no_words_in_the_spec() -> None:
    seen = answer([Submit(), Malformed("free", "its context is not empty", Free())], 1)
    assert next(answer_lines(seen)) == (
        "log: stops at line 2: free (event 2 of 2), which is malformed: the spec has no words for it"
    )
    assert behaviour([Release(NO_RANKS, True, "a")]).actions == ('[action |-> "Malformed"]',)


def test_a_disagreement_is_said() -> None:
    accepts, stops = answer([*BEGIN, Start()], 5), answer(BEGIN, 2)
    assert not accepts.agreed
    assert list(answer_lines(accepts)) == [
        "log: accepted (5 events)",
        "  check says: line 5: start: WrongPhase: the job starts although nothing is allocated",
        "  check DISAGREES: check or the spec is wrong, please report it",
    ]
    assert list(answer_lines(stops))[1] == (
        "  check DISAGREES: it accepts this: check or the spec is wrong, please report it"
    )


# -- what cannot be --


def test_a_log_that_does_not_begin_with_submit_is_refused(run: Run, no_tlc: None) -> None:
    status, out, err = run("trace-check", "-", stdin=b'{"timestamp":1,"name":"start"}\n')
    assert (status, out) == (2, "")
    assert err == (
        "error: <stdin>:1: begins with 'start', not with 'submit': it seems to be a fragment of a log; "
        "trace-check needs all of it\n"
    )


def test_without_tlc_the_error_is_one_line(run: Run, no_tlc: None) -> None:
    assert run("trace-check", LOGS / "plain.eventlog") == (2, "", "error: no TLC here\n")


def test_bad_usage_and_bad_files_are_refused(run: Run, no_tlc: None, tmp_path: Path) -> None:
    assert run("trace-check", "-", "-")[0] == 2
    assert run("trace-check", "--R", "x", "a", "b")[0] == 2
    status, out, err = run("trace-check", tmp_path / "none")
    assert (status, out) == (2, "")
    assert err.startswith(f"error: {tmp_path / 'none'}: cannot be read")


def test_what_could_be_read_is_followed_all_the_same(run: Run) -> None:
    log = (LOGS / "plain.eventlog").read_bytes() + b"{nothing\n"
    status, out, err = run("trace-check", "-", stdin=log)
    assert (status, out) == (2, "<stdin>: accepted (10 events)\n")
    assert err.startswith("error: <stdin>:11: ")


def test_a_life_without_end_is_refused_and_the_others_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_check, "MOST_EVENTS", 20)
    log = [*entries(BEGIN, 1), *entries([Submit(), *[Memo()] * 30], 2), *entries(BEGIN, 3)]
    found: list[Trace] = []
    with pytest.raises(TooLongError) as error:
        found.extend(traces("log", log))
    assert [trace.report.job for trace in found] == [1]
    assert str(error.value).startswith("job 2 has more than 20 events, the most that trace-check can take")
    assert error.value.entry.line == 21


def test_very_many_logs_are_followed_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_check, "MOST_EVENTS", 8)
    jobs = [trace for n in range(5) for trace in traces("log", entries(BEGIN, n))]
    assert [len(batch) for batch in batches(jobs)] == [3, 2]


def test_tlc_that_loses_a_log_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    result = tlc.Result(None, (), None, 0, 0, 0, 0.0, '<<"reached", 1, 4>>\n')
    monkeypatch.setattr(trace_check, "run", lambda *_, **__: result)
    one = list(traces("log", entries(BEGIN)))
    two = list(traces("log", entries(BEGIN[:1])))
    assert check_traces(one)[0][0].reached == 4
    with pytest.raises(tlc.TLCError, match="followed 1 of 2"):
        check_traces(one + two)
