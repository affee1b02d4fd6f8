"""What must hold of every reader whatever bytes it is given: a target a reader, to be fuzzed and to be replayed.

A target takes bytes and raises, if the reader broke a promise: it raised what it does not document, said something in
more than one line, said different things of the same bytes, or lost something on the way to a file and back.
"""

from __future__ import annotations

import io
import json
import math
import re
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple
from unittest import mock

from partialrelease import (
    Alloc,
    Entry,
    IdSet,
    IdSetError,
    LogError,
    Malformed,
    ResourceSet,
    ResourceSetError,
    eventlog,
    read_log,
    to_context,
    write_log,
)
from partialrelease.hostlist import Hostlist, HostlistError
from partialrelease.idset import MAX_ID
from partialrelease.sched_check import SchedChecker
from partialrelease.sched_trace import read_trace
from partialrelease.tlavalue import read_value, show_value

LONG: Final = 1 << 16
"""Of how many bytes the long inputs are, that :func:`lengthened` makes"""

SLOW: Final = 1.0
"""and how many seconds a reader may take for one of them."""

_FEW: Final = 1000  # hosts, or ids: so many are spelled out


def eventlog_target(data: bytes) -> None:
    """The forms of an eventlog, and a journal."""
    read = _read(io.BytesIO(data))
    assert _read(_Drops(data)) == read, "what is read depends on how it comes"
    with mock.patch.object(eventlog._LogReader, "_at_once", _not_at_once):
        assert _read(io.BytesIO(data)) == read, "the quick way and the way line by line differ"
    entries, error, warnings = read
    # Where a line of text was cut, nobody can tell.
    if all(line.startswith(b"{") for line in data.splitlines()) and not error and not warnings:
        left, error, _ = _read(io.BytesIO(data[: _number(data, len(data))]))
        assert not error or not left, f"a log cut short is refused: {error}"
        assert left == entries[: len(left)], "a log cut short has other entries"
    if entries:
        _round_trips(entries)


def _not_at_once(*_: object) -> None:
    return None


_Read = tuple[list[Entry], str, list[str]]


def _read(stream: Any) -> _Read:
    """The entries of a log, then the error if there was one, and the warnings."""
    entries: list[Entry] = []
    warnings: list[str] = []
    error = ""
    try:
        entries.extend(read_log("log", stream, warn=warnings.append))
    except LogError as refused:
        error = str(refused)
    _one_line(error, *warnings)
    return entries, error, warnings


class _Drops(io.BytesIO):
    """A stream that comes in drops, of one byte or of some."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._size = 1 + _number(data, 400)

    def read1(self, size: int | None = -1, /) -> bytes:
        return super().read1(self._size)


def _round_trips(entries: list[Entry]) -> None:
    """One of the forms that these entries can have."""
    times = [entry.timestamp for entry in entries]
    forms = ["json", "journal", "native"] if min(times) > 0 else []
    forms += ["text", "human"] if max(map(abs, times)) < 1e11 else []
    if forms:
        form = forms[_number(repr(times).encode(), len(forms))]
        if form in ("journal", "native"):
            entries = [entry if entry.job is not None else entry._replace(job=7) for entry in entries]
        _round_trip(entries, form)


def _round_trip(entries: list[Entry], form: str) -> None:
    written = io.StringIO()
    refused = ""
    try:
        write_log(entries, written, form)
    except ValueError as error:
        refused = str(error)
    if refused:
        # A name with a space in it, as text; an R with a number out of range in what is not read of it.
        assert "cannot be written" in refused or "not an R" in refused, refused
        _one_line(refused)
        return
    text = written.getvalue().encode()
    again, refused, warnings = _read(io.BytesIO(text))
    if "nested deeper" in refused:  # a form of the journal nests deeper
        return
    assert not refused, f"what was written as {form} is refused: {refused}"
    assert not warnings
    assert len(again) == len(entries), form
    for before, after in zip(entries, again, strict=True):
        assert _meaning(before, form) == _meaning(after, form), f"{before} became {after} as {form}"
        assert form == "human" or math.isclose(before.timestamp, after.timestamp, abs_tol=1e-6, rel_tol=1e-15)


def _meaning(entry: Entry, form: str) -> object:
    event = entry.event
    said = json.dumps(to_context(event), sort_keys=True)  # 1, 1.0 and true are equal in Python
    if form in ("journal", "native"):
        return entry.job, event, said, entry.resources
    if isinstance(event.meant if isinstance(event, Malformed) else event, Alloc):  # R is not in an eventlog
        return type(event), said
    return event, said


def r_target(data: bytes) -> None:
    """R, and what can be asked of it."""
    try:
        r = ResourceSet.parse(data)
    except ResourceSetError as error:
        _one_line(str(error))
        return
    written = _answer(ResourceSet.to_json, r)
    if isinstance(written, str):  # a number out of range in what is not read of it
        return
    again = ResourceSet.parse(json.dumps(written).encode())
    assert again == r
    for ask in (ResourceSet.hosts, ResourceSet.cores, ResourceSet.properties, ResourceSet.starttime):
        answer = _answer(ask, r)
        assert isinstance(answer, str) or _answer(ask, again) == answer  # a key that is there twice is written once
    half = IdSet(range(r.ranks.min(), r.ranks.min() + len(r.ranks) // 2 + 1)) & r.ranks
    try:
        parts = [r.fragment(ranks) for ranks in (half, r.ranks - half)]
    except ResourceSetError as error:
        _one_line(str(error))
        return
    for part in parts:
        assert part.text is not None
        assert ResourceSet.parse(part.text, may_be_empty=True) == part
        assert isinstance(_answer(ResourceSet.hosts, part), Hostlist | None)
    properties = _answer(ResourceSet.properties, r)
    for name, ranks in () if isinstance(properties, str) else properties.items():
        assert sum(len(part.properties().get(name, ())) for part in parts) == len(ranks & r.ranks)
    cores = [_answer(ResourceSet.cores, each) for each in (*parts, r)]
    assert isinstance(cores[2], str) or cores[0] | cores[1] == cores[2], "a core was lost"


def _answer(ask: Callable[[ResourceSet], object], r: ResourceSet) -> Any:
    try:
        return ask(r)
    except ResourceSetError as error:
        _one_line(str(error))
        return str(error)


def hostlist_target(data: bytes) -> None:
    """Hostlists."""
    text = data.decode(errors="replace")
    try:
        hosts = Hostlist.parse(text)
    except HostlistError as error:
        _one_line(str(error))
        return
    again = Hostlist.parse(str(hosts))
    assert again.count == hosts.count
    for place in (0, hosts.count - 1) if hosts.count else ():
        assert _spelled(again.take([(place, place)])) == _spelled(hosts.take([(place, place)]))
    if hosts.count <= _FEW:
        names = _spelled(hosts)
        assert len(names) == hosts.count
        assert _spelled(again) == names
        assert _spelled(Hostlist.parse(",".join(names))) == names
        for name in names[:3]:
            assert hosts.find(name) == tuple(place for place, other in enumerate(names) if other == name)
        middle = hosts.count // 2
        if middle:
            assert _spelled(hosts.take([(0, middle - 1), (middle, hosts.count - 1)])) == names


def _spelled(hosts: Hostlist) -> list[str]:
    return [
        f"{row.prefix}{number:0{row.width}d}{row.suffix}" if row.width else row.prefix
        for row in hosts.rows
        for number in range(row.low, row.high + 1)
    ]


def idset_target(data: bytes) -> None:
    """Idsets, against a plain reading of RFC 22."""
    text = data.decode(errors="replace")
    expected = _runs(text)
    ids, refused = None, ""
    try:
        ids = IdSet(text)
    except IdSetError as error:
        refused = str(error)
        _one_line(refused)
    assert (ids is None) is (expected is None), refused
    if ids is None or expected is None:
        return
    assert list(ids.runs()) == expected
    assert IdSet(str(ids)) == ids
    assert str(ids) == ",".join(f"{a}-{b}" if a < b else f"{a}" for a, b in expected)


def _runs(text: str) -> list[tuple[int, int]] | None:
    """The runs of an idset, ``None`` if it is none."""
    runs: list[tuple[int, int]] = []
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    for element in text.split(",") if text else ():
        match = re.fullmatch(r"(0|[1-9][0-9]{0,9})(?:-([1-9][0-9]{0,9}))?", element)
        if match is None:
            return None
        low = int(match[1])
        high = int(match[2] or low)
        if low <= (runs[-1][1] if runs else -1) or high > MAX_ID or (match[2] and high <= low):
            return None
        if runs and runs[-1][1] + 1 == low:
            low = runs.pop()[0]
        runs.append((low, high))
    return runs


def trace_target(data: bytes) -> None:
    """What was traced of a scheduler, in both forms; and checking it."""
    warnings: list[str] = []
    checker = SchedChecker()
    last = 0
    try:
        for message in read_trace("trace", io.BytesIO(data), warn=warnings.append):
            assert message.line >= last
            last = message.line
            for _ in checker.step(message):
                pass
    except LogError as error:
        _one_line(str(error))
    for job in checker.finish():
        _one_line(*(finding.message for finding in job.findings))
    _one_line(*warnings)


def tla_target(data: bytes) -> None:
    """Values of TLA+ as TLC prints them."""
    read = read_value.__wrapped__
    try:
        value = read(data.decode(errors="replace"))
    except ValueError:
        return
    assert read(show_value(value)) == value


def _one_line(*messages: str) -> None:
    for message in messages:
        assert "\n" not in message, message
        message.encode()


def _number(data: bytes, below: int) -> int:
    """A number that is always the same for the same data."""
    return zlib.crc32(data) % below


def lengthened(data: bytes) -> bytes:
    """A long input: a part of this one, again and again."""
    if not data:
        return data
    start = _number(data, len(data))
    part = data[start : start + 1 + _number(data[::-1], len(data))]
    return (data[:start] + part * (LONG // len(part)) + data[start + len(part) :])[: 2 * LONG]


def _read_log(data: bytes) -> None:
    for _ in read_log("log", io.BytesIO(data), warn=str):
        pass


def _read_r(data: bytes) -> None:
    r = ResourceSet.parse(data)
    for ask in (ResourceSet.hosts, ResourceSet.cores, ResourceSet.properties):
        ask(r)
    r.fragment(IdSet([r.ranks.max()]))


def _read_trace(data: bytes) -> None:
    for _ in read_trace("trace", io.BytesIO(data), warn=str):
        pass


class Target(NamedTuple):
    """``look`` raises where a promise is broken. ``read`` is the reader alone, whose time is bounded."""

    look: Callable[[bytes], None]
    read: Callable[[bytes], object]


TARGETS: Final = {
    "eventlog": Target(eventlog_target, _read_log),
    "journal": Target(eventlog_target, _read_log),  # one reader, but other inputs to begin with
    "r": Target(r_target, _read_r),
    "hostlist": Target(hostlist_target, lambda data: str(Hostlist.parse(data.decode(errors="replace")))),
    "idset": Target(idset_target, lambda data: str(IdSet(data.decode(errors="replace")))),
    "trace": Target(trace_target, _read_trace),
    "tla": Target(tla_target, lambda data: read_value.__wrapped__(data.decode(errors="replace"))),
}


def seconds(target: Target, data: bytes) -> float:
    """The processor time that the reader alone takes."""
    begin = time.process_time()
    with suppress(LogError, ValueError):
        target.read(data)
    return time.process_time() - begin
