"""Reading and writing logs: the forms, what is odd, what is refused, and that nothing is lost on the way."""

import gzip
import io
import json
import lzma
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partialrelease import (
    ALL_RANKS,
    MAX_LINE,
    Alloc,
    Entry,
    EpilogFinish,
    EpilogStart,
    Event,
    Finish,
    Free,
    IdSet,
    JobException,
    LogError,
    Malformed,
    Memo,
    PartialFree,
    Release,
    ResourceSet,
    Submit,
    Unknown,
    open_log,
    read_log,
    read_r,
    write_log,
)

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

DATA = Path(__file__).parent / "data"
PLAIN = DATA / "eventlogs" / "plain.eventlog"
SUBMIT = '{"timestamp":5.5,"name":"submit","context":{"userid":0,"urgency":16,"flags":0,"version":1}}'


def read(text: str | bytes, warnings: list[str] | None = None, resources: ResourceSet | None = None) -> list[Entry]:
    stream = io.BytesIO(text.encode() if isinstance(text, str) else text)
    warned = [] if warnings is None else warnings
    entries = list(read_log("log", stream, resources=resources, warn=warned.append))
    assert warnings is not None or warned == []
    return entries


def events(text: str | bytes) -> list[Event]:
    return [entry.event for entry in read(text)]


def refused(text: str | bytes) -> LogError:
    with pytest.raises(LogError) as error:
        read(text)
    assert "\n" not in str(error.value)
    return error.value


# -- the forms --


def test_json_lines_have_lines_times_and_events() -> None:
    assert read(SUBMIT + '\n\n{"timestamp":6,"name":"finish","context":{"status":1}}\n') == [
        Entry(1, None, 5.5, Submit()),
        Entry(3, None, 6.0, Finish(1)),
    ]


def test_the_text_form_has_json_values_that_may_contain_anything() -> None:
    line = '5.25 exception type="can cel" severity=0 note="a=b \\"c\\" d" userid=7\n'
    assert read(line) == [Entry(1, None, 5.25, JobException("can cel", 0, 'a=b "c" d', extra={"userid": 7}))]


@pytest.mark.parametrize(
    ("time", "timestamp"),
    [
        ("1796134725.113419", 1796134725.113419),
        ("0.000000", 0.0),
        ("2023-11-14T21:02:39.537774Z", 1699995759.537774),
        ("2023-11-14T22:02:39.537774+0100", 1699995759.537774),
        ("2023-11-14T21:02:39.537774", 1699995759.537774),
    ],
)
def test_the_times_of_the_text_form(time: str, timestamp: float) -> None:
    assert read(f"{time} free\n") == [Entry(1, None, timestamp, Free())]


def test_the_human_form_counts_from_the_first_minute() -> None:
    text = (
        "\x1b[1m\x1b[32m[Dec31 23:58]\x1b[0m \x1b[33msubmit\x1b[0m \x1b[34muserid\x1b[0m=\x1b[37m0\x1b[0m"
        " urgency=16 flags=0 version=1\n"
        "[  +0.500000] free\n[Jan01 00:00] free\n[  +2.250000] free\n[Jan01 00:01] free\n"
    )
    assert [entry.timestamp for entry in read(text)] == [0.0, 0.5, 120.0, 122.25, 180.0]
    assert read(text)[0].event == Submit()


def test_a_minute_of_the_human_form_is_never_before_the_line_above() -> None:
    text = "[Feb29 10:00] free\n[ +59.900000] free\n[Feb29 10:00] free\n"
    assert [entry.timestamp for entry in read(text)] == [0.0, 59.9, 59.9]


def test_the_human_form_may_go_on_for_thousands_of_years() -> None:
    entries = read("[Dec31 23:59] free\n[Jan01 00:01] free\n" * 3000)
    assert entries[-1].timestamp == 2999 * 366 * 86400 + 120


def test_the_journal_has_ids_and_r_an_event_a_line_or_many() -> None:
    r = {"version": 1, "execution": {"R_lite": [{"rank": "4-5", "children": {"core": "0"}}], "nodelist": ["n[4-5]"]}}
    alloc = {"timestamp": 2.0, "name": "alloc", "context": {"annotations": {}}}
    lines = [
        {"id": 7, **alloc, "R": r},
        {"id": 8, "events": [{"timestamp": 1.0, "name": "free"}, alloc], "R": r, "jobspec": {"a": [1]}},
        {"id": -1, "events": []},
    ]
    entries = read("".join(json.dumps(line) + "\n" for line in lines))
    assert [(entry.line, entry.job, entry.event.name) for entry in entries] == [
        (1, 7, "alloc"),
        (2, 8, "free"),
        (2, 8, "alloc"),
    ]
    for entry in (entries[0], entries[2]):
        assert isinstance(entry.event, Alloc)
        assert entry.event.ranks == IdSet("4-5")
        assert entry.resources is not None
        assert str(entry.resources.hosts()) == "n[4-5]"


def test_only_the_sentinel_of_a_journal_is_a_log_without_jobs() -> None:
    assert read('{"id":-1,"events":[]}\n') == []


@pytest.mark.parametrize(
    ("context", "given_r", "ranks"),
    [
        ({"annotations": {"sched": {"resource_summary": "rank[0-1,3]/core[0-1] rank7/core0"}}}, None, IdSet("0-1,3,7")),
        ({"annotations": {"sched": {"resource_summary": "rank0/core0"}}}, ResourceSet(IdSet("5")), IdSet("5")),
        ({"annotations": {"sched": {"resource_summary": "node17"}}}, None, ALL_RANKS),
        ({"bypass": True}, None, ALL_RANKS),
        (None, None, ALL_RANKS),
    ],
)
def test_where_the_ranks_of_an_alloc_come_from(
    context: dict[str, object] | None, given_r: ResourceSet | None, ranks: IdSet
) -> None:
    entry = {"timestamp": 1.0, "name": "alloc", **({} if context is None else {"context": context})}
    (read_back,) = read(json.dumps(entry), resources=given_r)
    assert isinstance(read_back.event, Alloc)
    assert read_back.event.ranks == ranks
    assert (read_back.resources is None) == (ranks == ALL_RANKS)


@pytest.mark.parametrize(("suffix", "compress"), [("gz", gzip.compress), ("xz", lzma.compress), ("zst", zstd.compress)])
def test_compressed_logs_are_read_as_they_are(tmp_path: Path, suffix: str, compress: Callable[[bytes], bytes]) -> None:
    packed = tmp_path / f"plain.eventlog.{suffix}"
    packed.write_bytes(compress(PLAIN.read_bytes()))
    assert list(read_log(str(packed))) == list(read_log(str(PLAIN)))
    packed.write_bytes(compress(PLAIN.read_bytes())[:-30])
    with pytest.raises(LogError, match="cannot be read"):
        list(read_log(str(packed)))
    packed.write_bytes(b"nothing of the kind")
    with pytest.raises(LogError, match="cannot be read"):
        list(read_log(str(packed)))


def test_carriage_returns_and_a_byte_order_mark_do_no_harm() -> None:
    text = PLAIN.read_text()
    assert read("\ufeff" + text.replace("\n", "\r\n")) == read(text)


def test_what_is_read_is_counted(tmp_path: Path) -> None:
    counts: list[int] = []
    with open_log(str(PLAIN), counts.append) as stream:
        list(read_log("log", stream))
    assert sum(counts) == PLAIN.stat().st_size


# -- a log that is still being written --


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_last_line_cut_short_is_a_warning(cut: int) -> None:
    text = PLAIN.read_text()
    warnings: list[str] = []
    entries = read(text[:-cut], warnings)
    if cut == 1:  # only the newline is missing
        assert (len(entries), warnings) == (10, [])
    else:
        assert len(entries) == 9
        assert [warning.startswith("log:10: the last line is cut short") for warning in warnings] == [True]


@pytest.mark.parametrize(
    "tail", ["1796134726.6362", "2.0 fre", '2.0 epilog-finish description="a" stat', "2.0 finish status="]
)
def test_a_last_text_line_cut_short_is_a_warning(tail: str) -> None:
    warnings: list[str] = []
    assert len(read(f"1.0 free\n{tail}", warnings)) == 1
    assert len(warnings) == 1


def test_warnings_go_to_standard_error_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    list(read_log("log", io.BytesIO(b'1.0 free\n{"time')))
    assert capsys.readouterr().err.startswith("warning: log:2: the last line is cut short")


# -- what is refused --


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 0, "no events"),
        ("\n \n", 0, "no events"),
        (b"\x7fELF\0\0\1\n", 1, "binary data"),
        (SUBMIT + "\n{}\n", 2, "missing required field `timestamp`"),
        ('{"foo":1}\n', 1, "missing required field"),
        ('{"id":1,"events":[{"name":"x"}]}\n', 1, "missing required field `timestamp` - at `$.events"),
        ("[1,2]\n", 1, "not an eventlog entry: '[1,2]'"),
        (f"[{SUBMIT}]\n", 1, "one entry a line"),
        ("42\n", 1, "not an eventlog entry"),
        ('"text"\n', 1, "not an eventlog entry"),
        ('{"timestamp":"1.0","name":"free"}\n', 1, "Expected `float`, got `str` - at `$.timestamp`"),
        ('{"timestamp":NaN,"name":"free"}\n', 1, "malformed"),
        ('{"timestamp":1e999,"name":"free"}\n', 1, "out of range"),
        ('{"timestamp":-1,"name":"free"}\n', 1, "not above zero"),
        ('{"timestamp":0,"name":"free"}\n', 1, "not above zero"),
        ('{"timestamp":1,"name":7}\n', 1, "Expected `str`, got `int` - at `$.name`"),
        ('{"timestamp":1,"name":"free","context":[]}\n', 1, "Expected `object`, got `array`"),
        ('{"timestamp":1,"name":"free","context":null}\n', 1, "Expected `object`, got `null`"),
        ('{"timestamp":1,"name":"free"} {}\n', 1, "trailing characters"),
        ("[" * 200 + "]" * 200 + "\n", 1, "not an eventlog entry"),
        ('{"timestamp":1,"name":"x","context":' + '{"a":' * 200 + "1" + "}" * 201 + "\n", 1, "deeper than 100"),
        (b'{"timestamp":1,"name":"fr\xff\xfeee"}\n', 1, "not UTF-8 text"),
        (b"1.0 fr\xff\xfeee\n", 1, "not UTF-8 text"),
        ("yesterday free\n", 1, "not a time: 'yesterday'"),
        ("2023-99-99T00:00:00 free\n", 1, "not a time"),
        ("[Dec99 14:18] free\n", 1, "not a date"),
        ("[0x10] free\n", 1, "not a time"),
        ("1.0 finish status\n", 1, "not key=value: 'status'"),
        ("1.0 finish status=zero\n", 1, "not key=value"),
        ("1.0 finish status=0,x=1\n", 1, "not key=value"),
        ("1.0 finish status=NaN\n", 1, "not key=value"),
        ("1.0 finish =0\n", 1, "not key=value"),
        ("1.0 finish status=1e999\n", 1, "not key=value"),
        ('1.0 memo a="\\ud800"\n', 1, "surrogate"),
        ("1.0 memo a=" + "[" * 101 + "]" * 101 + "\n", 1, "deeper than 100"),
        ('{"id":1,"timestamp":1,"name":"alloc","R":{"version":1}}\n', 1, "not an R (RFC 20)"),
        ('{"id":1,"timestamp":1,"name":"alloc","R":{"version":1,"execution":{"R_lite":[]}}}\n', 1, "no ranks"),
    ],
)
def test_what_is_not_an_entry_is_refused_with_its_line(text: str | bytes, line: int, message: str) -> None:
    error = refused(text)
    assert (error.source, error.line) == ("log", line)
    assert message in error.message
    assert str(error).startswith(f"log:{line}: " if line else "log: ")


def test_a_line_without_end_is_refused_and_not_kept() -> None:
    for line in (b'{"timestamp":1,"name":"', b"1.0 "):
        assert "longer than 16 MiB" in refused(line + b"x" * (MAX_LINE + 10)).message


def test_deep_brackets_in_a_string_are_no_nesting() -> None:
    text = json.dumps({"timestamp": 1.0, "name": "memo", "context": {"a": '[{"' * 200}})
    assert events(text) == [Memo(extra={"a": '[{"' * 200})]


def test_a_string_that_does_not_end_takes_no_longer_than_one_that_does() -> None:
    line = '{"timestamp":1,"name":"' + '\\"' * 30_000 + "{" * 101
    begin = time.process_time()
    assert "truncated" in refused(line + "\n").message
    assert time.process_time() - begin < 1


def test_an_idset_of_a_million_separate_ids_works() -> None:
    ids = IdSet(range(0, 2_000_000, 2))
    (event,) = events(json.dumps({"timestamp": 1.0, "name": "partial-free", "context": {"ranks": str(ids)}}))
    assert event == PartialFree(ids)


@pytest.mark.parametrize("path", ["/nonexistent/log", "/"])
def test_a_file_that_cannot_be_opened_is_refused(path: str) -> None:
    with pytest.raises(LogError, match="cannot be read"):
        list(read_log(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "truncated"),
        (b"\xff\xfe", "not an R"),
        (b'{"version":2,"execution":{"R_lite":[{"rank":"0"}]}}', "$.version"),
        (b'{"version":1,"execution":{"R_lite":[{"rank":"3-1"}]}}', "does not ascend"),
        (
            b'{"version":1,"execution":{"R_lite":[{"rank":"0-3"}],"nodelist":["n[0-999999999]"]}}',
            "1000000000 hosts for 4",
        ),
        (b'{"version":1,"execution":{"R_lite":[{"rank":"0-3"}],"nodelist":["n[0-"]}}', "not a hostlist"),
        (b'{"version":1,"execution":{"R_lite":[{"rank":"0"}],"x":"' + b"x" * MAX_LINE + b'"}}', "longer than 16 MiB"),
    ],
)
def test_an_r_that_is_none_is_refused(tmp_path: Path, text: bytes, message: str) -> None:
    file = tmp_path / "job.R"
    file.write_bytes(text)
    with pytest.raises(LogError, match=r"job\.R: ") as error:
        read_r(str(file))
    assert message in error.value.message


# -- writing --


def test_recorded_logs_are_written_back_key_by_key() -> None:
    def pairs(text: str) -> list[object]:
        return [json.loads(line, object_pairs_hook=list) for line in text.splitlines()]

    for log in (DATA / "eventlogs").glob("*.eventlog"):
        written = io.StringIO()
        write_log(read_log(str(log)), written)
        assert pairs(written.getvalue()) == pairs(log.read_text())


def test_text_and_human_forms_are_written_as_flux_does() -> None:
    for name in ("plain", "late-epilog"):
        entries = list(read_log(str(DATA / "eventlogs" / f"{name}.eventlog")))
        for form, suffix in (("text", "txt"), ("human", "human.txt")):
            written = io.StringIO()
            write_log(entries, written, form)
            assert written.getvalue() == (DATA / "eventlogs" / f"{name}.{suffix}").read_text()


def test_the_journal_is_written_back_with_its_resources() -> None:
    lines = (DATA / "journal-1024-ranks.ndjson").read_bytes().splitlines(keepends=True)[:500]
    entries = read(b"".join(lines))
    for form in ("journal", "native"):
        written = io.StringIO()
        write_log(entries, written, form)
        again = read(written.getvalue())
        assert again == entries
        assert [e.resources and e.resources.to_json() for e in again] == [
            e.resources and e.resources.to_json() for e in entries
        ]


def test_a_journal_needs_ids() -> None:
    for form in ("journal", "native"):
        with pytest.raises(ValueError, match="job id"):
            write_log([Entry(1, None, 1.0, Free())], io.StringIO(), form)


@pytest.mark.parametrize(
    ("name", "context"),
    [("a b", {}), ("", {}), ("a\nb", {}), ("x", {"a=b": 1}), ("x", {"": 1}), ("x", {"a\nb": 1}), ("x", {"\x1b[1m": 1})],
)
@pytest.mark.parametrize("form", ["text", "human"])
def test_a_name_that_text_cannot_have_is_not_written(name: str, context: dict[str, int], form: str) -> None:
    written = io.StringIO()
    with pytest.raises(ValueError, match="cannot be written in a form of text") as error:
        write_log([Entry(1, None, 1.0, Unknown(name, extra=context))], written, form)
    assert "\n" not in str(error.value)
    assert written.getvalue() == ""


def test_an_alloc_that_is_malformed_keeps_its_r() -> None:
    r = {"version": 1, "execution": {"R_lite": [{"rank": "4-5"}]}}
    line = {"id": 7, "timestamp": 2.0, "name": "alloc", "context": {"bypass": 1}, "R": r}
    entries = read(json.dumps(line) + "\n")
    assert isinstance(entries[0].event, Malformed)
    for form in ("journal", "native"):
        written = io.StringIO()
        write_log(entries, written, form)
        assert read(written.getvalue()) == entries


_json = st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5), st.lists, max_leaves=4)
_text = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=8)
_extra = st.dictionaries(st.from_regex(r"[a-z]{1,6}_", fullmatch=True), _json, max_size=3)
_ranks = st.one_of(st.just(ALL_RANKS), st.builds(IdSet, st.sets(st.integers(0, 70))))
_events = st.one_of(
    st.builds(Submit, st.integers(0, 9), st.integers(0, 31), extra=_extra),
    st.builds(Finish, st.integers(0, 9), extra=_extra),
    st.builds(JobException, _text, st.integers(0, 7), _text, extra=_extra),
    st.builds(Release, _ranks, st.booleans()),
    st.builds(Release, _ranks, st.just(False), _text, extra=_extra),
    st.builds(EpilogStart, _text, st.none() | _ranks, extra=_extra),
    st.builds(EpilogFinish, _text, st.integers(-3, 3), extra=_extra),
    st.builds(Memo, extra=_extra),
    st.builds(Unknown, st.from_regex(r"[a-z.]{1,9}-x", fullmatch=True), extra=_extra),
    st.builds(lambda ranks: Alloc(ranks), st.builds(IdSet, st.sets(st.integers(0, 70), min_size=1))),
    st.just(Free()),
)


@given(
    logged=st.lists(st.tuples(st.integers(1, 10**13), _events), min_size=1, max_size=6),
    form=st.sampled_from(["json", "text", "human", "journal", "native"]),
)
def test_every_form_round_trips_every_event(logged: list[tuple[int, Event]], form: str) -> None:
    job = 9 if form in ("journal", "native") else None
    times = sorted(microseconds / 1e6 for microseconds, _ in logged)
    entries = [
        Entry(line, job, time, event, ResourceSet(event.ranks) if isinstance(event, Alloc) else None)
        for line, (time, (_, event)) in enumerate(zip(times, logged, strict=True), 1)
    ]
    written = io.StringIO()
    write_log(entries, written, form)
    again = read(written.getvalue())
    for before, after in zip(entries, again, strict=True):
        if job is None and isinstance(before.event, Alloc):  # R is not in an eventlog
            assert isinstance(after.event, Alloc)
        else:
            assert (after.line, after.job, after.event) == (before.line, before.job, before.event)
        assert form == "human" or after.timestamp == pytest.approx(before.timestamp, abs=1e-6)


@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_whatever_the_bytes_reading_ends_in_entries_or_in_an_error_of_one_line(text: bytes) -> None:
    warnings: list[str] = []
    try:
        read(text, warnings)
    except LogError as error:
        message = str(error)
    else:
        message = ""
    assert "\n" not in message
