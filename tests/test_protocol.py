"""The line protocol: what is written is read again, and what is none of it is refused with a reason."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partialrelease import Alloc, Event, IdSet, Job, LastRank, Malformed, Unknown, make_event
from partialrelease.implementation import Implementation
from partialrelease.protocol import (
    Answer,
    GarbageError,
    Queued,
    Request,
    Reset,
    answer_line,
    can_be_asked,
    read_answer,
    read_request,
    request_line,
    state_of,
)
from partialrelease.strategies import Log, legal_logs, probes

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "spec" / "protocol.md").read_text()


def test_the_exchange_on_the_page_is_what_the_code_says() -> None:
    job = Implementation()
    lines = re.findall(r"^([<>]) (.*)$", PAGE.partition("```\n")[2].partition("```")[0], re.MULTILINE)
    assert len(lines) > 12
    for (way, asked), (back, answered) in zip(lines[::2], lines[1::2], strict=True):
        assert (way, back) == (">", "<")
        assert job.ask(asked) == answered


@given(legal_logs())
def test_requests_are_read_as_they_were_written(log: Log) -> None:
    for event in log.events:
        line = request_line(event)
        assert not re.search(r"[\x00-\x08\x0a-\x1f\x7f]", line)
        assert can_be_asked(event)
        read = read_request(line)
        assert isinstance(read, Event)
        assert read.extra.keys() == event.extra.keys()


@given(st.text(), st.text(), st.text())
def test_any_text_can_be_said_in_a_line(name: str, key: str, value: str) -> None:
    event = Unknown(f"debug.{name}", extra={key.replace("=", "."): value})
    read = read_request(request_line(event))
    assert read == event


@pytest.mark.parametrize("request_", [Reset(LastRank.DEFER), Queued(), Queued(("memo", "epilog-start"))])
def test_other_requests_are_read_as_they_were_written(request_: Request) -> None:
    assert read_request(request_line(request_)) == request_


def test_what_is_another_event_once_it_is_a_line_cannot_be_asked() -> None:
    not_asked = [event for event in probes(Job()) if not can_be_asked(event)]
    assert {(event.name, *event.extra) for event in not_asked} == {
        ("finish", "status"),  # "0", a string
        ("prolog-start", "description"),  # 7
        ("epilog-start", "description", "ranks"),  # [0], a list
    }
    assert all(isinstance(event, Malformed) for event in not_asked)
    assert can_be_asked(make_event("release", {"ranks": "3-1", "final": False}))
    assert can_be_asked(Alloc(IdSet("0-3")))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "reset, event or queued"),
        ("event", "reset, event or queued"),
        ("reset", "reset, event or queued"),
        ("reset\tlast_rank=never", "keep, defer or with-last"),
        ("event\tfinish\tstatus", "without '='"),
    ],
)
def test_what_is_no_request_is_refused(line: str, why: str) -> None:
    with pytest.raises(GarbageError, match=why):
        read_request(line)


@given(legal_logs())
def test_answers_are_read_as_they_were_written(log: Log) -> None:
    job = Implementation()
    job.answer(Reset(log.last_rank))
    for event in log.events:
        answer = job.answer(event)
        assert read_answer(answer_line(answer)) == answer


def test_a_part_of_an_answer_may_be_left_out() -> None:
    answer = read_answer("ok\theld=[0-3]\tphase=RUN\treleased=\tmore=x")
    assert answer == Answer(frozenset({"phase", "held", "released"}), None, "RUN", IdSet("0-3"), released=IdSet())
    assert answer_line(answer) == "ok\tphase=RUN\theld=0-3\treleased="
    assert read_answer("violation") == Answer(frozenset(), "")
    assert answer_line(read_answer("violation")) == "violation"


OK = "ok\tphase=RUN\theld=0\treleased="


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "begins with 'ok' or 'violation'"),
        ("ok phase=RUN", "begins with 'ok' or 'violation'"),
        ("OK", "begins with 'ok' or 'violation'"),
        ("ok", "'phase' is missing"),
        ("ok\tphase=RUN\treleased=", "'held' is missing"),
        (f"{OK}\theld=0", "'held' is said twice"),
        (f"{OK}\tx", "without '='"),
        (f"{OK}\treferenced=1-0", "'referenced' is .*1-0"),
        (f"{OK}\treferenced=all", "'referenced' is .*all"),
        (f"{OK}\tpost=start", "'post' is free, clean, partial-free"),
        (f"{OK}\tpost=free 0", "'post' is free, clean, partial-free"),
        (f"{OK}\tpost=partial-free x", "'post' is .*x"),
        ("violation\tGateOpen", "not a violation's code: GateOpen"),
        ("violation\tNotHeld\tx", "not a violation's code: NotHeld x"),
    ],
)
def test_what_is_no_answer_is_refused(line: str, why: str) -> None:
    with pytest.raises(GarbageError, match=why):
        read_answer(line)


def test_what_the_package_cannot_read_it_says_and_ends() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "partialrelease.implementation"],
        check=False,
        capture_output=True,
        text=True,
        input="reset\tlast_rank=keep\nevent\talloc\tR=3-1\n",
        timeout=60,
    )
    assert (done.returncode, len(done.stdout.splitlines())) == (2, 1)
    assert done.stderr.startswith("error: line 2: ")
    assert done.stderr.count("\n") == 1


def test_while_an_epilog_start_is_queued_nothing_is_posted() -> None:
    job = Implementation()
    events: list[Event] = [make_event("submit", {"userid": 1, "urgency": 16, "flags": 0})]
    events.append(make_event("exception", {"type": "cancel", "severity": 0}))
    for event in events:
        job.answer(event)
    assert state_of(job.job, ["memo"]).post == ("clean", IdSet())
    assert state_of(job.job, ["memo", "epilog-start"]).post is None
