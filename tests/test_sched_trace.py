"""Traces of a scheduler are read in each form, what is wrong with one is said, and `check --sched-trace` shows it."""

import contextlib
import gzip
import io
import json
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_copy import DATA, HOUSEKEPT, LEAKED, TRACE, Block, blocks, findings, frees, grant, hellos, text

from partialrelease import IdSet, LogError, ResourceSet, sched_trace
from partialrelease.cores import CoreSet
from partialrelease.sched_check import (
    AllocEnd,
    AllocGrant,
    AllocRequest,
    FreeRequest,
    HelloEnd,
    HelloJob,
    HelloRequest,
    SchedChecker,
    SchedDrop,
    SchedMessage,
)
from partialrelease.sched_trace import read_trace

LOGS = DATA / "eventlogs"

Run = Callable[..., tuple[int, str, str]]


def read(text: bytes | str, warned: list[str] | None = None) -> list[SchedMessage]:
    stream = io.BytesIO(text if isinstance(text, bytes) else text.encode())
    warned = [] if warned is None else warned
    return list(read_trace("t", stream, warn=warned.append))


def error_of(text: bytes | str) -> str:
    with pytest.raises(LogError) as error:
        read(text)
    return str(error.value)


def json_line(block: Block, **changes: Any) -> str:
    """The message as the broker's module.trace service sends it."""
    time, name, prefix, kind, topic, *_, status = block.head.split()
    payload = {} if block.payload is None else {"payload": block.payload}
    errnum = 61 if status == "ENODATA" else 0
    timestamp = datetime.fromisoformat(time).replace(tzinfo=UTC).timestamp()
    line = {"timestamp": timestamp, "prefix": prefix, "name": name, "type": 1 if kind == ">" else 2, "topic": topic}
    return json.dumps({**line, "payload_size": 9, **payload, "errnum": errnum, "errstr": "", **changes}) + "\n"


def json_lines(trace: Iterable[Block], **changes: Any) -> str:
    return "".join(json_line(block, **changes) for block in trace)


def bodies(messages: Iterable[SchedMessage]) -> list[Any]:
    return [message.body for message in messages]


# -- forms --


def test_the_recorded_trace_is_read() -> None:
    messages = read(TRACE.read_bytes())
    assert messages[0] == SchedMessage(1, 1796134786.315, AllocRequest(54408511488, 1796134786.2891195))
    r = ResourceSet(IdSet("0-3"), ("vm,vm,vm,vm",))
    cores = CoreSet.of([("core", IdSet("0-1"), IdSet("0-3"))])
    assert messages[1] == SchedMessage(66, 1796134786.327, AllocGrant(54408511488, cores, r, 1796134786.3170052))
    assert messages[2] == SchedMessage(95, 1796134788.365, FreeRequest(54408511488, cores, True, 1796134786.3170052))
    counts = {kind: sum(isinstance(body, kind) for body in bodies(messages)) for kind in (HelloRequest, HelloEnd)}
    assert counts == {HelloRequest: 2, HelloEnd: 2}
    assert HelloRequest(partial_ok=True) in bodies(messages)
    assert HelloJob(268301238272, None, 1796134799.0377843) in bodies(messages)
    assert len(messages) == 44


def test_a_copy_that_was_not_edited_is_read_as_the_original() -> None:
    assert read(text(blocks())) == read(TRACE.read_bytes())


def test_json_lines_say_the_same() -> None:
    messages = read(json_lines(blocks()))
    original = read(TRACE.read_bytes())
    assert bodies(messages) == bodies(original)
    assert [message.time for message in messages] == pytest.approx([message.time for message in original])
    assert [message.line for message in messages][:4] == [1, 2, 3, 4]


@pytest.mark.parametrize(("request_", "response"), [("request", "response"), (">", "<")])
def test_json_lines_may_say_the_type_in_words_and_leave_out_the_rest(request_: str, response: str) -> None:
    lines = []
    for line in map(json.loads, json_lines(blocks()).splitlines()):
        line["type"] = request_ if line["type"] == 1 else response
        lines.append(
            json.dumps({k: v for k, v in line.items() if k not in ("prefix", "name", "payload_size", "errstr")})
        )
    assert bodies(read("\n\n".join(lines) + "\n")) == bodies(read(TRACE.read_bytes()))


def test_colours_blank_lines_and_other_line_ends_do_not_matter() -> None:
    coloured = b""
    for block in text(blocks()).split(b"\n2026"):
        time, _, rest = block.partition(b" ")
        coloured += b"\n\x1b[32m%s%s\x1b[0m \x1b[36m%s\x1b[0m\n\n" % (b"2026" if coloured else b"", time, rest)
    expected = bodies(read(TRACE.read_bytes()))
    assert bodies(read(coloured)) == expected
    assert bodies(read(b"\xef\xbb\xbf" + TRACE.read_bytes().replace(b"\n", b"\r\n"))) == expected


def test_human_times_are_read() -> None:
    trace = blocks()[:3]
    for block, time in zip(trace, ("[Dec01 14:19]", "[ +46.327000]", "[ +48.365000]"), strict=True):
        block.head = f"{time}  {block.head.partition(' ')[2]}"
    messages = read(text(trace))
    assert bodies(messages) == bodies(read(text(blocks()[:3])))
    assert [message.time for message in messages] == [0.0, 46.327, 48.365]


def test_names_that_are_aligned_and_other_schedulers_are_read() -> None:
    trace = blocks()
    for block in trace[20:]:
        block.head = block.head.replace(" sched-simple ", " sched-fluxion-qmanager ")
    for block in trace[:20]:
        block.head = block.head.replace(" sched-simple ", "           sched-simple ")
    assert bodies(read(text(trace))) == bodies(read(TRACE.read_bytes()))


def job_manager_side(block: Block) -> Block:
    words = {"rx": "tx", "tx": "rx"}
    swapped = re.sub(r" (rx|tx) ", lambda match: f" {words[match[1]]} ", block.head)
    return Block(swapped.replace("sched-simple", "job-manager"), block.payload)


def test_what_the_job_manager_sent_and_received_says_the_same() -> None:
    assert findings(map(job_manager_side, blocks())) == []
    assert bodies(read(text(map(job_manager_side, blocks())))) == bodies(read(TRACE.read_bytes()))


@pytest.mark.parametrize("first", [0, 1])
def test_a_message_that_was_traced_at_both_ends_counts_once(first: int) -> None:
    both = []
    for block in blocks():
        pair = (block, job_manager_side(block))
        both += [pair[first], pair[1 - first]]
    reader = read_trace("t", io.BytesIO(text(both)))
    assert bodies(reader) == bodies(read(TRACE.read_bytes()))
    assert reader.others == 44 + 2 * 4


def test_messages_of_other_topics_are_counted() -> None:
    head = "2026-12-01T14:20:00.000 sched-simple"
    others = [
        f"{head} rx e heartbeat.pulse [0]",
        f"{head} rx c disconnect 1 [0]",
        f"{head} rx c  [0]",
        f"{head} rx < kvs.lookup [0] ENOENT\nNo such key\nand more",
        f"{head} rx < sched.expiration [0] errno 999",
        f'{head} rx < kvs.lookup [1.5K] success\n{{\n  "id": "?"\n}}',
        f'{head} rx > sched.expiration [30]\n{{\n  "id": 9,\n  "expiration": 12.5\n}}',
        f'{head} tx < sched.alloc [30] success\n{{\n  "id": 9,\n  "type": 1,\n  "annotations": {{}}\n}}',
        f"{head} tx < sched.alloc [0] ENOSYS",
        f'{head} tx > job-manager.raise [30]\n{{\n  "id": 9,\n  "type": "x",\n  "severity": 0\n}}',
    ]
    reader = read_trace("t", io.BytesIO("\n".join(others).encode()))
    assert (list(reader), reader.others) == ([], len(others))


def test_refusals_exceptions_and_failed_hellos_are_read() -> None:
    head = "2026-12-01T14:20:00.000 sched-simple"
    more = [
        f'{head} tx < sched.alloc [30] success\n{{\n  "id": 9,\n  "type": 2\n}}',
        f'{head} tx < sched.alloc [30] success\n{{\n  "id": 9,\n  "type": 3\n}}',
        f'{head} tx < sched.alloc [30] success\n{{\n  "id": 9,\n  "type": 0\n}}',
        f'{head} tx > job-manager.raise [30]\n{{\n  "id": 9,\n  "type": "scheduler-restart",\n  "severity": 0\n}}',
        f"{head} tx > job-manager.sched-hello [0]",
        f"{head} rx < job-manager.sched-hello [0] EPROTO\nwrong",
        f"{head} rx < job-manager.sched-hello [0] errno 61",
    ]
    assert bodies(read("\n".join(more))) == [
        AllocEnd(9), AllocEnd(9), AllocGrant(9, None), SchedDrop(9), HelloRequest(), HelloEnd(False), HelloEnd(),
    ]  # fmt: skip


def test_a_free_may_carry_an_empty_r() -> None:
    trace = blocks()
    free = frees(trace, HOUSEKEPT)[0]
    free.payload["R"]["execution"]["R_lite"] = []
    (message,) = read(str(free))
    assert isinstance(message.body, FreeRequest)
    assert not message.body.cores


def test_a_file_is_opened_and_closed(tmp_path: Path) -> None:
    packed = tmp_path / "trace.gz"
    packed.write_bytes(gzip.compress(TRACE.read_bytes()))
    assert len(list(read_trace(str(packed)))) == 44
    with pytest.raises(LogError, match="cannot be read: No such file"):
        list(read_trace(str(tmp_path / "none")))
    packed.write_bytes(gzip.compress(TRACE.read_bytes())[:-900])
    with pytest.raises(LogError, match=r"trace.gz:[0-9]+: cannot be read from here on: "):
        list(read_trace(str(packed)))


# -- what is wrong --

FREE = "2026-12-01T14:19:48.365 sched-simple rx > sched.free [202]\n"
R = '"R": {"version": 1, "execution": {"R_lite": [{"rank": "0", "children": {"core": "0"}}]}}'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", r"t: no messages in it; expected a line of `flux module trace --full` such as .*, or a JSON line such as"),
        ("\n \n", r"t: no messages in it"),
        ("hello\n", r"t:1: not a message: 'hello.n'; expected a line of `flux module trace --full`"),
        ("\x00\xff\n", r"t:1: not a message: "),
        ("[1]\n", r"t:1: not a message: "),
        ("2026-13-01T14:19:48 x rx > sched.free [2]\n", r"t:1: not a time: '2026-13-01T14:19:48'"),
        (FREE, r"t:1: not a sched.free request \(RFC 27\): it has no payload; trace with `flux module trace --full`"),
        (FREE + "{\n}\n", r"t:1: not a sched.free request \(RFC 27\): Object missing required field `id`"),
        (FREE + '{"id": 1}\n', r"t:1: .*Object missing required field `R`"),
        (FREE + '{"id": "1", ' + R + "}\n", r"t:1: .*Expected `int`, got `str` - at `\$.id`"),
        (FREE + '{"id": 1, "R": {}}\n', r"t:1: .*not an R \(RFC 20\): Object missing required field `version`"),
        (FREE + '{"id": 1, ' + R.replace('"core": "0"', '"core": "x"') + "}\n", r"children.core`"),
        (FREE + '{"id": 1, ' + R + '}\n{"id": 2}\n' + FREE, r"t:1: .*JSON is malformed: trailing characters"),
        (
            FREE + '{"id": 1, ' + R + "}\nwhat is this\n",
            r"t:3: not a message: 'what is this.n'; expected .* line of JSON",
        ),
        (FREE + '{"id": 1,\n' + FREE, r"t:1: not a sched.free request .*truncated"),
        (FREE + "[" * 5000 + "\n" + FREE, r"t:1: not a sched.free request"),
        (FREE.encode() + b'{"id": 1, "x": "\xff"}\n', r"t:1: not a sched.free request .*utf-8"),
        (
            FREE.replace("rx > sched.free [202]", "tx < sched.alloc [9] success") + '{"id": 1, "type": 4}',
            r"t:1: not a sched.alloc response \(RFC 27\): Invalid enum value 4 - at `\$.type`",
        ),
        (
            FREE.replace("rx > sched.free [202]", "rx < job-manager.sched-hello [9] success")
            + '{"id": 1, "free": "x"}',
            r"t:1: not a job-manager.sched-hello response \(RFC 27\): not an idset",
        ),
        (
            '{"timestamp": 1}\n',
            r"t:1: not a message: Object missing required field `topic`; expected a JSON line such as",
        ),
        ('{"timestamp":1.5,"name":"free"}\n', r"t:1: not a message: Object missing required field `topic`"),
        ('{"timestamp": 1, "topic": "x", "type": 1}\nxx\n', r"t:2: not a message: JSON is malformed"),
        ("{" + "[" * 5000 + "\n", r"t:1: not a message"),
        (b'{"timestamp": 1, "topic": "\xff", "type": 1}\n', r"t:1: not a message"),
        ('{"timestamp": 1, "topic": "sched.free", "type": 1}\n', r"t:1: not a sched.free request .*it has no payload"),
        ('{"timestamp": 1, "topic": "sched.free", "type": 1, "payload": []}\n', r"Expected `object`, got `array`"),
    ],
)
def test_what_is_no_trace_is_refused_with_the_line_and_what_was_expected(text: str | bytes, problem: str) -> None:
    assert re.search(problem, error_of(text))


def test_messages_before_the_bad_line_are_read() -> None:
    trace = text(blocks()[:4]) + b"what is this\n"
    assert error_of(trace).startswith("t:181: not a message: 'what is this")
    reader = iter(read_trace("t", io.BytesIO(trace)))
    assert [next(reader) for _ in range(3)] == read(text(blocks()[:3]))


@pytest.mark.parametrize("cut", [10, 40, 58, 59, 62, 80, 120, 165])
def test_a_trace_that_is_being_written_is_read_up_to_its_last_message(cut: int) -> None:
    before = text(blocks()[:3])
    last = str(frees(blocks(), HOUSEKEPT)[0]).encode()
    warned: list[str] = []
    messages = read(before + last[:cut], warned)
    assert messages == read(before)
    (warning,) = warned
    assert re.fullmatch(r"t:[0-9]+: the last message is cut short \(a trace still being written\?\) .*", warning)


def test_a_json_line_that_is_being_written_is_left_out() -> None:
    lines = json_lines(blocks()[:3])
    warned: list[str] = []
    assert len(read(lines[:-20], warned)) == 2
    assert len(warned) == 1


PIECE = text(blocks()[40:])


@settings(max_examples=60)
@given(st.integers(0, len(PIECE)), st.integers(0, 40), st.binary(max_size=6) | st.sampled_from([b"-1", b"null", b"{}"]))
def test_whatever_is_in_a_trace_it_is_read_or_refused(place: int, gone: int, put: bytes) -> None:
    for piece in (PIECE, json_lines(blocks()[40:]).encode()):
        with contextlib.suppress(LogError):
            checker = SchedChecker()
            for message in read_trace("t", io.BytesIO(piece[:place] + put + piece[place + gone :]), warn=len):
                list(checker.step(message))
            list(checker.finish())


def test_memory_stays_bounded_whatever_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sched_trace, "MAX_MESSAGE", 1 << 20)
    assert "t:1: longer than 1 MiB" in error_of(b"x" * (2 << 20))
    assert "a message longer than 1 MiB" in error_of(FREE.encode() + b" " * 1000 + b'{"x": 1}\n' * 200_000)


# -- the command --


@pytest.fixture
def run(run: Run) -> Run:
    """Runs ``check``."""
    return partial(run, "check")


def test_a_trace_alone_is_a_line_a_job_and_a_sum(run: Run) -> None:
    status, out, err = run("--sched-trace", TRACE)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert len(lines) == 13
    assert lines[1] == (
        f"{TRACE} job {HOUSEKEPT}: ranks 0-3 (vm,vm,vm,vm) allocated; freed in 4 fragments, the last one final; ok"
    )
    assert lines[2].endswith(": ranks 0-3 (vm,vm,vm,vm) allocated; freed at once, final; ok")
    assert f"{TRACE} job {LEAKED}: ranks 0-1 (vm,vm) allocated; all still allocated; ok" in lines
    assert lines[-1] == f"{TRACE}: 12 jobs, 44 messages (4 others left out), 2 hellos of a scheduler: no violations"


def test_a_trace_of_something_else_says_so(run: Run) -> None:
    status, out, err = run("--sched-trace", "-", stdin=b'{"timestamp":1,"type":">","topic":"kvs.get","payload":{}}\n')
    assert (status, out) == (0, "<stdin>: 0 jobs, 0 messages (1 other left out): no violations\n")
    assert err.startswith("warning: <stdin>: nothing was checked: ")


def test_a_final_free_of_nothing_freed_no_ranks(run: Run) -> None:
    r = b'{"version":1,"execution":{"R_lite":[],"starttime":0,"expiration":0}}'
    free = b'{"timestamp":1,"type":">","topic":"sched.free","payload":{"id":1,"R":' + r + b',"final":true}}\n'
    assert (
        "<stdin> job 1: allocated before the trace; no ranks freed, final; ok\n"
        in run("--sched-trace", "-", stdin=free)[1]
    )


def test_options_of_logs_want_a_log(run: Run) -> None:
    for options in (["--R", "x"], ["--fragment"]):
        status, _, err = run("--sched-trace", TRACE, *options)
        assert (status, "--R and --fragment are of eventlogs: give FILE too" in err) == (2, True)


def test_beside_its_log_the_leaked_job_is_found(run: Run) -> None:
    status, out, err = run("--sched-trace", TRACE, LOGS / "H-free-context.eventlog", LOGS / "plain.eventlog")
    assert status == 1
    assert f"job {LEAKED} ({LOGS / 'H-free-context.eventlog'}): ranks 0-1 (vm,vm) allocated" in out
    place = f"{TRACE}:1108: +0.000s (2026-12-01 14:20:03.542 UTC): sched.alloc: NeverFreed: "
    assert (
        f"  {place}rank[0-1]/core[0-1] was never freed, although the job went clean\n      ranks 0-1 (vm,vm)\n" in out
    )
    assert out.endswith("2 hellos of a scheduler: 1 violation in 1 job\n")
    assert err == (
        f"warning: {LOGS / 'plain.eventlog'}: no job of the trace found for it, "
        "by the time of its submit or the starttime of its R: not compared with the trace\n"
    )


def test_what_was_freed_too_early_is_shown_with_its_holder(run: Run) -> None:
    trace = blocks()
    for block in frees(trace, HOUSEKEPT):
        block.head = block.head.replace("14:19:49.667", "14:19:49.570")
    args = ("--sched-trace", "-", LOGS / "B-housekeeping.eventlog")
    status, out, _ = run(*args, stdin=text(trace))
    assert status == 1
    assert "sched.free: ReleasedWhileReferenced: rank 0 freed while still referenced by the exec system\n" in out
    assert "      holder: the exec system (ranks 0-3)\n      These nodes could go to another job" in out
    status, out, _ = run(*args, "--format", "json", stdin=text(trace))
    (job,) = (line for line in map(json.loads, out.splitlines()) if line.get("job") == HOUSEKEPT)
    assert job["violations"] == [
        {
            "line": 210,
            "timestamp": 1796134789.57,
            "event": "sched.free",
            "code": "ReleasedWhileReferenced",
            "ranks": "0",
            "holders": [{"kind": "exec", "description": None, "ranks": "0-3", "since": None}],
            "message": "rank 0 freed while still referenced by the exec system",
        }
    ]


def test_json_is_an_object_a_job_and_a_sum(run: Run) -> None:
    status, out, _ = run("--sched-trace", TRACE, "--format", "json", LOGS / "H-free-context.eventlog")
    assert status == 1
    log, *jobs, total = map(json.loads, out.splitlines())
    assert log["phase"] == "INACTIVE"
    assert [list(job) for job in jobs] == 12 * [
        ["source", "job", "log", "allocated", "left", "freed", "fragments", "final", "violations"]
    ]
    assert jobs[1] == {
        "source": str(TRACE),
        "job": HOUSEKEPT,
        "log": None,
        "allocated": "0-3",
        "left": "",
        "freed": "0-3",
        "fragments": 4,
        "final": True,
        "violations": [],
    }
    assert total == {
        "source": str(TRACE), "jobs": 12, "messages": 44, "others": 4, "hellos": 2, "violations": 1, "violating": 1,
    }  # fmt: skip


def test_a_job_from_before_the_trace_and_one_that_went_away_are_shown_as_such(run: Run) -> None:
    trace = blocks()
    start = trace.index(grant(trace, HOUSEKEPT)) + 1
    kept = trace[start:]
    kept.remove(hellos(kept, 268301238272)[1])
    kept.remove(frees(kept, 268301238272)[0])
    status, out, _ = run("--sched-trace", "-", stdin=text(kept))
    assert status == 0
    freed = "ranks 0-3 freed in 4 fragments, the last one final"
    assert f"<stdin> job {HOUSEKEPT}: allocated before the trace; {freed}; ok\n" in out
    assert "allocated; it ended while no scheduler was loaded; ok\n" in out


def printed(*messages: tuple[str, Any]) -> bytes:
    head = "2026-12-01T14:20:00.000 sched-simple"
    return "".join(f"{head} {line}\n{json.dumps(payload, indent=2)}\n" for line, payload in messages).encode()


def r(ranks: str, **execution: Any) -> Any:
    lite = [{"rank": ranks, "children": {"core": "0"}}] if ranks else []
    return {"version": 1, "execution": {"R_lite": lite, **execution}}


GRANT = "tx < sched.alloc [9] success"
FREED = "rx > sched.free [9]"
HELLO = ("tx > job-manager.sched-hello [9]", {"partial-ok": True})
HELLO_END = b"2026-12-01T14:20:00.000 sched-simple rx < job-manager.sched-hello [0] ENODATA\n"


@pytest.mark.parametrize(
    ("trace", "line"),
    [
        (
            printed((GRANT, {"id": 1, "type": 0, "R": r("0-3")}), (FREED, {"id": 1, "R": r("2")})),
            "job 1: ranks 0-3 allocated; rank 2 freed at once; ranks 0-1,3 still allocated; ok",
        ),
        (
            printed(
                (GRANT, {"id": 1, "type": 0, "R": r("0-3")}),
                HELLO,
                ("rx < job-manager.sched-hello [9] success", {"id": 1, "free": "2"}),
            )
            + HELLO_END,
            "job 1: ranks 0-3 allocated; rank 2 free, as a hello says; ok",
        ),
        (
            printed(
                (GRANT, {"id": 1, "type": 0, "R": r("0-3")}),
                ("tx > job-manager.raise [9]", {"id": 1, "type": "scheduler-restart", "severity": 0}),
            ),
            "job 1: ranks 0-3 allocated; the scheduler could not take it over, and raised an exception; ok",
        ),
        (
            printed((GRANT, {"id": 1, "type": 0})),
            "job 1: allocated, but the trace does not say what; ok",
        ),
        (
            printed(HELLO) + HELLO_END + printed((FREED, {"id": 1, "R": r("0"), "final": True})),
            "job 1: not seen to be allocated; rank 0 freed at once, final; 1 VIOLATION",
        ),
    ],
)
def test_each_state_of_a_job_has_its_words(run: Run, trace: bytes, line: str) -> None:
    _, out, _ = run("--sched-trace", "-", stdin=trace)
    assert f"<stdin> {line}\n" in out


def test_a_journal_of_other_jobs_is_said_to_be_one(run: Run) -> None:
    status, out, err = run("--sched-trace", TRACE, DATA / "journal-1024-ranks.ndjson")
    assert status == 0
    assert "500 jobs, 6605 events: no violations\n" in out
    assert "journal-1024-ranks.ndjson: 500 of its jobs are not in the trace: not compared with it\n" in err


def test_a_finding_without_ranks_names_none(run: Run) -> None:
    trace = blocks()
    said = hellos(trace, 268301238272)[0]
    trace.insert(trace.index(said), said)
    status, out, _ = run("--sched-trace", "-", stdin=text(trace))
    assert status == 1
    message = "HelloTwice: a second response for the job in one hello: the one may undo the other"
    assert f"{message}\n      Of two responses for one job" in out


def test_an_error_is_said_after_what_was_read(run: Run) -> None:
    status, out, err = run("--sched-trace", "-", stdin=text(blocks()[:3]) + b"junk\n")
    assert status == 2
    assert "1 job, 2 messages: no violations; not all could be read\n" in out
    assert err.startswith("error: <stdin>:119: not a message: 'junk\\n'; expected ")
    status, out, err = run("--sched-trace", "-", stdin=b"junk\n")
    assert (status, out) == (2, "")
    assert err.startswith("error: <stdin>:1: not a message")


def test_a_trace_that_cannot_be_opened_is_an_error(run: Run, tmp_path: Path) -> None:
    status, out, err = run("--sched-trace", tmp_path / "none")
    assert (status, out) == (2, "")
    assert err == f"error: {tmp_path / 'none'}: cannot be read: No such file or directory\n"


def test_standard_input_is_read_only_once(run: Run) -> None:
    status, _, err = run("--sched-trace", "-", "-")
    assert status == 2
    assert "standard input can be read only once" in err


def test_a_bad_nodelist_is_an_error_and_its_job_is_shown(run: Run) -> None:
    trace = blocks()
    grant(trace, HOUSEKEPT).payload["R"]["execution"]["nodelist"] = ["vm"]
    status, out, err = run("--sched-trace", "-", stdin=text(trace))
    assert status == 2
    assert f"job {HOUSEKEPT}: ranks 0-3 allocated; freed in 4 fragments" in out
    assert f"error: <stdin>: job {HOUSEKEPT}: not an R (RFC 20): 1 hosts for 4 ranks" in err
