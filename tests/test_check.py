"""What checking finds in real logs, in all their forms, and in copies with one line removed, doubled or moved."""

import io
import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from partialrelease import (
    ALL_RANKS,
    Alloc,
    Code,
    Entry,
    Event,
    IdSet,
    Invalidate,
    Job,
    LastRank,
    LogError,
    Malformed,
    Memo,
    NotALogStartError,
    Phase,
    Report,
    ResourceSet,
    Submit,
    Urgency,
    begin_report,
    check_entries,
    find_r,
    known_ranks,
    read_log,
    read_r,
    write_log,
)

DATA = Path(__file__).parent / "data"
LOGS = sorted((DATA / "eventlogs").glob("*.eventlog"))
JOURNAL = DATA / "journal-1024-ranks.ndjson"

# The logs that break a rule, and where; all others are clean.
VIOLATIONS = {
    "unmatched-finish": [(10, "UnknownHolder"), (11, "ReleasedWhileReferenced"), (12, "CleanWhileHeld")],
    "dup-description": [(9, "DuplicateHolder")],
    "H-free-context": [(10, "MalformedContext")],
}

Codes = list[tuple[int, str]]


def codes(report: Report) -> Codes:
    return [(finding.line, finding.violation.code.value) for finding in report.findings]


def report_on(log: Path | str, lines: Iterable[str] | None = None, *, with_r: bool = True) -> Report:
    path = str(log)
    r = find_r(path) if with_r else None
    stream = None if lines is None else io.BytesIO("".join(lines).encode())
    (report,) = check_entries(read_log(path, stream, resources=read_r(r) if r else None))
    return report


@pytest.mark.requirement("PR-24", "PR-46")
@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_recorded_logs_break_only_the_rules_that_they_are_known_to_break(log: Path) -> None:
    report = report_on(log)
    assert codes(report) == VIOLATIONS.get(log.stem, [])
    assert report.state.phase is Phase.INACTIVE
    assert not report.state.held
    assert report.state.released == report.state.allocation
    assert report.events == len(log.read_text().splitlines())


@pytest.mark.parametrize("log", sorted((DATA / "eventlogs").glob("*.txt")), ids=lambda log: log.name)
def test_text_forms_agree_with_json(log: Path) -> None:
    text, original = report_on(log), report_on(log.with_name(f"{log.name.split('.')[0]}.eventlog"))
    assert (text.state, codes(text), text.events) == (original.state, codes(original), original.events)


@pytest.mark.parametrize("form", ["json", "text", "human", "journal", "native"])
@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_every_form_that_is_written_gives_the_same_verdict(log: Path, form: str) -> None:
    r = find_r(str(log))
    entries = list(read_log(str(log), resources=read_r(r) if r else None))
    if form in ("journal", "native"):
        entries = [entry._replace(job=7) for entry in entries]
    written = io.StringIO()
    write_log(entries, written, form)
    again = list(read_log("again", io.BytesIO(written.getvalue().encode()), resources=read_r(r) if r else None))
    assert [entry.job for entry in again] == [entry.job for entry in entries]
    (report,) = check_entries(again)
    original = report_on(log)
    assert (report.state, codes(report)) == (original.state, codes(original))


def test_the_unmatched_finish_is_explained_with_ranks_and_holders() -> None:
    log = DATA / "eventlogs" / "unmatched-finish.eventlog"
    _, freed, _ = report_on(log).findings
    assert str(freed.violation.ranks) == "0-1"
    assert [(hold.holder.description, str(hold.holder.ranks), hold.since) for hold in freed.holds] == [
        ("a", "0-1", 1796134722.697386)
    ]
    assert freed.timestamp == 1796134723.0362864


@pytest.mark.requirement("PR-46")
def test_the_journal_is_clean_and_counts_every_job() -> None:
    reports = list(check_entries(read_log(str(JOURNAL))))
    assert len(reports) == 500
    assert sum(report.events for report in reports) == 6605
    assert [codes(report) for report in reports if report.findings] == []
    assert all(report.state.phase is Phase.INACTIVE for report in reports)
    assert all(report.state.released == report.state.allocation for report in reports)


SLOW = [pytest.param(first, marks=pytest.mark.slow) for first in (1000, 2500, 4000)]


@pytest.mark.parametrize("first", [1, *SLOW, 6000, 6604])
def test_a_journal_that_begins_in_the_middle_of_jobs_is_clean(first: int) -> None:
    lines = JOURNAL.read_bytes().splitlines(keepends=True)[first:]
    reports = list(check_entries(read_log("tail", io.BytesIO(b"".join(lines)))))
    assert [codes(report) for report in reports if report.findings] == []
    submitted = sum(b'"submit"' in line for line in lines)
    assert sum(report.fragment is not None for report in reports) == len(reports) - submitted > 0


def test_jobs_of_a_journal_do_not_disturb_each_other() -> None:
    """A journal of all recorded logs at once, line by line in turn, gives each job its own verdict."""
    logs = {number: list(read_log(str(log))) for number, log in enumerate(LOGS)}
    turns = [
        entry._replace(job=number)
        for line in range(max(map(len, logs.values())))
        for number, entries in logs.items()
        for entry in entries[line : line + 1]
    ]
    found = {report.job: codes(report) for report in check_entries(turns)}
    assert found == {number: VIOLATIONS.get(log.stem, []) for number, log in enumerate(LOGS)}


def test_what_follows_the_end_of_a_journal_job_is_found() -> None:
    lines = JOURNAL.read_text().splitlines(keepends=True)
    clean = [line for line in lines if '"clean"' in line][-50]  # not long ago
    reports = check_entries(read_log("journal", io.BytesIO("".join([*lines, clean]).encode())))
    assert [(report.job, codes(report)) for report in reports if report.findings] == [
        (json.loads(clean)["id"], [(6606, "AfterInactive")])
    ]


# -- copies of real logs with one line removed, doubled or moved; lines count from 1 --

REMOVED: list[tuple[str, int, Codes]] = [
    ("plain", 2, []),  # logs of older versions have no validate
    ("plain", 6, []),  # the shells never started
    ("plain", 5, [(5, "WrongPhase"), (7, "WrongPhase"), (8, "WrongPhase"), (9, "WrongPhase")]),
    ("plain", 7, [(7, "WrongPhase"), (8, "GateClosed"), (9, "WrongPhase")]),
    ("plain", 8, [(8, "ReleasedWhileReferenced"), (9, "CleanWhileHeld")]),
    ("plain", 9, [(9, "CleanWhileHeld")]),
    ("plain", 10, []),  # still active
    ("one-epilog", 8, [(9, "UnknownHolder")]),
    ("one-epilog", 10, [(10, "ReleasedWhileReferenced"), (11, "CleanWhileHeld")]),
    ("A-proposed", 10, [(10, "ReleasedWhileReferenced")]),
    ("A-proposed", 11, []),
    ("A-proposed", 13, [(13, "FreeWhileActive"), (14, "CleanWhileHeld")]),
    ("ranks-keys", 12, [(12, "FreeWhileActive"), (13, "CleanWhileHeld")]),
    ("cancel-pending", 5, [(5, "WrongPhase"), (7, "WrongPhase")]),
    ("cancel-pending", 7, [(7, "CleanWhileHeld")]),
    ("cancel-running", 9, [(9, "WrongPhase")]),
    ("C-perilog", 6, [(6, "UnknownHolder")]),
    ("C-perilog", 7, [(7, "WrongPhase"), (12, "ReleasedWhileReferenced"), (13, "CleanWhileHeld")]),
]
DOUBLED: list[tuple[str, int, Codes]] = [
    ("plain", 1, [(2, "WrongPhase")]),
    ("plain", 4, []),
    ("plain", 5, [(6, "WrongPhase")]),
    ("plain", 6, [(7, "WrongPhase")]),
    ("plain", 7, [(8, "WrongPhase")]),
    ("plain", 8, [(9, "WrongPhase")]),
    ("plain", 9, [(10, "WrongPhase")]),
    ("plain", 10, [(11, "AfterInactive")]),
    ("one-epilog", 8, [(9, "DuplicateHolder"), (12, "ReleasedWhileReferenced"), (13, "CleanWhileHeld")]),
    ("one-epilog", 10, [(11, "UnknownHolder")]),
    ("A-proposed", 10, [(11, "NotHeld")]),
    ("A-proposed", 11, [(12, "NotHeld")]),
    ("ranks-keys", 8, [(9, "DuplicateHolder"), (14, "FreeWhileActive"), (15, "CleanWhileHeld")]),
    (
        "C-perilog",
        6,
        [(7, "DuplicateHolder"), (9, "WrongPhase"), (14, "ReleasedWhileReferenced"), (15, "CleanWhileHeld")],
    ),
    ("cancel-running", 7, []),  # a second cancel changes nothing
]
# (log, the line, the line before which it goes, what is found)
MOVED: list[tuple[str, int, int, Codes]] = [
    ("plain", 9, 6, [(6, "GateClosed")]),
    ("plain", 9, 7, [(7, "ReleasedWhileReferenced")]),
    ("plain", 9, 8, [(8, "ReleasedWhileReferenced")]),
    ("plain", 10, 9, [(9, "CleanWhileHeld"), (10, "AfterInactive")]),
    ("plain", 6, 5, [(5, "WrongPhase")]),
    ("one-epilog", 8, 7, [(7, "WrongPhase")]),
    ("one-epilog", 11, 10, [(10, "ReleasedWhileReferenced")]),
    ("A-proposed", 11, 10, [(10, "ReleasedWhileReferenced"), (11, "NotHeld")]),
    ("A-proposed", 11, 9, [(9, "ReleasedWhileReferenced"), (11, "NotHeld")]),
    ("A-proposed", 14, 12, [(12, "ReleasedWhileReferenced"), (13, "NotHeld")]),
    ("C-perilog", 8, 7, [(7, "WrongPhase")]),
    ("cancel-pending", 6, 5, [(5, "WrongPhase")]),
]


def lines_of(name: str) -> tuple[Path, list[str]]:
    log = DATA / "eventlogs" / f"{name}.eventlog"
    return log, log.read_text().splitlines(keepends=True)


@pytest.mark.requirement("PR-24")
@pytest.mark.parametrize(("name", "line", "found"), REMOVED)
def test_a_log_with_one_line_removed(name: str, line: int, found: Codes) -> None:
    log, lines = lines_of(name)
    del lines[line - 1]
    assert codes(report_on(log, lines)) == found


@pytest.mark.requirement("PR-24")
@pytest.mark.parametrize(("name", "line", "found"), DOUBLED)
def test_a_log_with_one_line_doubled(name: str, line: int, found: Codes) -> None:
    log, lines = lines_of(name)
    lines.insert(line, lines[line - 1])
    assert codes(report_on(log, lines)) == found


@pytest.mark.requirement("PR-24")
@pytest.mark.parametrize(("name", "line", "before", "found"), MOVED)
def test_a_log_with_one_line_moved(name: str, line: int, before: int, found: Codes) -> None:
    log, lines = lines_of(name)
    lines.insert(before - 1, lines.pop(line - 1))
    assert codes(report_on(log, lines)) == found


@pytest.mark.requirement("PR-27")
def test_the_last_rank_is_a_setting() -> None:
    lines = [
        '{"timestamp":1.0,"name":"submit","context":{"userid":0,"urgency":16,"flags":0,"version":1}}\n',
        '{"timestamp":2.0,"name":"alloc","context":{"annotations":{"sched":{"resource_summary":"rank[0-1]/core0"}}}}\n',
        '{"timestamp":3.0,"name":"start"}\n',
        '{"timestamp":4.0,"name":"finish","context":{"status":0}}\n',
        '{"timestamp":5.0,"name":"epilog-start","context":{"description":"stage-out","ranks":""}}\n',
        '{"timestamp":6.0,"name":"release","context":{"ranks":"all","final":true}}\n',
        '{"timestamp":7.0,"name":"partial-free","context":{"ranks":"0-1"}}\n',
    ]
    for last_rank, found in [(LastRank.KEEP, ["LastRankFreed"]), (LastRank.DEFER, []), (LastRank.WITH_LAST, [])]:
        (report,) = check_entries(read_log("log", io.BytesIO("".join(lines).encode())), last_rank=last_rank)
        assert [code for _, code in codes(report)] == found


# -- R --


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_without_any_r_the_verdict_is_right_where_the_log_only_says_all(log: Path) -> None:
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    for entry in entries:
        if entry["name"] == "alloc":
            entry.pop("context", None)
    report = report_on(log, [json.dumps(entry) + "\n" for entry in entries], with_r=False)
    assert codes(report) == VIOLATIONS.get(log.stem, [])


def test_r_comes_from_the_annotation_when_there_is_nothing_better() -> None:
    assert str(report_on(DATA / "eventlogs" / "plain.eventlog", with_r=False).state.allocation) == "0-3"


def test_the_r_beside_a_log_is_found_whatever_the_form(tmp_path: Path) -> None:
    (tmp_path / "job.R").write_text("{}")
    for name in ("job.eventlog", "job.txt", "job.human.txt", "job.eventlog.gz", "job.human.txt.zst", "job"):
        assert find_r(str(tmp_path / name)) == str(tmp_path / "job.R")
    for name in ("other.eventlog", "job.1.eventlog", "job.R"):
        assert find_r(str(tmp_path / name)) is None


# -- fragments --


def test_a_fragment_must_be_declared() -> None:
    log, lines = lines_of("unmatched-finish")
    with pytest.raises(NotALogStartError, match=r"begins with 'start'.*a fragment"):
        report_on(log, lines[5:])


@pytest.mark.parametrize("first", [4, 5, 6])
def test_a_declared_fragment_is_checked_as_far_as_it_goes(first: int) -> None:
    log, lines = lines_of("unmatched-finish")
    stream = io.BytesIO("".join(lines[first:]).encode())
    (report,) = check_entries(read_log(str(log), stream), fragment=True)
    assert codes(report) == [(line - first, code) for line, code in VIOLATIONS["unmatched-finish"]]


def test_nothing_is_found_in_a_fragment_that_its_missing_part_can_explain() -> None:
    log, lines = lines_of("unmatched-finish")
    stream = io.BytesIO("".join(lines[8:]).encode())  # "b" may have started in what is missing
    (report,) = check_entries(read_log(str(log), stream), fragment=True)
    assert [code for _, code in codes(report)] == []


def test_jobs_that_live_the_same_life_keep_what_is_their_own() -> None:
    """Equal logs but for R, the time, and one bad annotation: each job has its own ranks, and its own violation."""
    log = list(read_log(str(DATA / "eventlogs" / "plain.eventlog")))
    resources = [None if job % 5 == 4 else ResourceSet(IdSet(f"{job}-{job + 9}")) for job in range(20)]
    entries = []
    for job, r in enumerate(resources):
        ranks = ALL_RANKS if r is None else r.ranks
        for entry in log:
            event: Event = Alloc(ranks) if isinstance(entry.event, Alloc) else entry.event
            if job == 7 and isinstance(event, Alloc):
                event = Malformed("alloc", "'annotations' is not an object", event)
            entries.append(entry._replace(job=job, event=event, resources=r if event.name == "alloc" else None))
    reports = list(check_entries(entries))
    assert [report.state.released for report in reports] == [ALL_RANKS if r is None else r.ranks for r in resources]
    assert [report.state.allocation for report in reports] == [report.state.released for report in reports]
    assert [report.resources for report in reports] == resources
    assert [(report.job, codes(report)) for report in reports if report.findings] == [(7, [(5, "MalformedContext")])]


@pytest.mark.requirement("PR-05")
def test_jobs_replayed_by_their_beginnings_are_as_if_replayed_step_by_step() -> None:
    entries = list(read_log(str(JOURNAL)))
    steps: dict[int | None, Report] = {}
    for entry in entries:
        if entry.job not in steps:
            steps[entry.job] = begin_report(entry, Job())
        steps[entry.job].step(entry)
    reports = {report.job: report for report in check_entries(entries)}
    assert reports.keys() == steps.keys()
    for job, report in reports.items():
        assert report.state == steps[job].state
        assert report.holds() == steps[job].holds()
        assert (report.events, report.began, report.resources) == (
            steps[job].events,
            steps[job].began,
            steps[job].resources,
        )


def test_nothing_may_follow_an_invalid_job_also_where_another_like_it_was_seen() -> None:
    submit, invalidate, memo = Submit(), Invalidate(), Memo()
    lives = [[submit, invalidate], [submit, invalidate, memo]]
    entries = [Entry(1, job, 1.0 + job, event) for job, life in enumerate(lives, 1) for event in life]
    assert [codes(report) for report in check_entries(entries)] == [[], [(1, "AfterInactive")]]


def test_a_job_with_a_long_log_is_replayed_as_it_goes() -> None:
    log = list(read_log(str(DATA / "eventlogs" / "unmatched-finish.eventlog")))
    memo = Entry(0, None, log[5].timestamp, Memo())
    (report,) = check_entries([*log[:5], *[memo] * 1000, *log[5:]])
    assert (codes(report), report.events) == (VIOLATIONS["unmatched-finish"], 1012)


def test_the_finish_of_one_of_two_leaves_the_other_s_time() -> None:
    log = list(read_log(str(DATA / "eventlogs" / "dup-description.eventlog")))[:11]
    log[8] = log[8]._replace(timestamp=log[8].timestamp + 0.001)
    (report,) = check_entries(log)
    assert [hold.since for hold in report.holds()] == [log[8].timestamp]
    log = list(read_log(str(DATA / "eventlogs" / "late-epilog.eventlog")))[:11]
    (report,) = check_entries(log)
    assert [(hold.holder.description, hold.since) for hold in report.holds()] == [("late", log[9].timestamp)]


def test_what_is_known_of_ranks_that_are_not_known() -> None:
    assert known_ranks(IdSet("0-3"))
    assert not known_ranks(ALL_RANKS - IdSet("0"))


def test_lives_of_more_kinds_than_are_remembered_are_judged_all_the_same() -> None:
    log = list(read_log(str(DATA / "eventlogs" / "plain.eventlog")))
    entries = [
        entry._replace(job=job, event=Urgency(extra={"job": job}) if place == 5 else entry.event)
        for job in range(2500)
        for place, entry in enumerate([*log[:5], log[5], *log[5:]])
    ]
    reports = list(check_entries(entries))
    assert len(reports) == 2500
    assert all(report.state.released == IdSet("0-3") and not report.findings for report in reports)


# -- memory: jobs that have ended are let go --


def test_a_report_comes_soon_after_its_job_has_ended() -> None:
    def jobs() -> Iterable[Entry]:
        for job in range(10_000):
            seen.append(job)
            for entry in log:
                yield entry._replace(job=job)

    seen: list[int] = []
    log = list(read_log(str(DATA / "eventlogs" / "plain.eventlog")))
    reports = iter(check_entries(jobs()))
    first = next(reports)
    assert first.job == 0
    assert len(seen) < 200
    assert sum(1 for _ in reports) == 9_999


def test_an_unreadable_log_names_its_line() -> None:
    log, lines = lines_of("plain")
    lines[3] = "nonsense\n"
    with pytest.raises(LogError) as error:
        report_on(log, lines)
    assert error.value.line == 4


def test_every_violation_code_has_a_meaning() -> None:
    from partialrelease import MEANING

    assert list(MEANING) == list(Code)
