"""Read and write eventlogs in the forms in which Flux shows them. Everything is streamed, a line at a time.

The forms, told apart by how each line begins:

- RFC 18 JSON lines (``flux job eventlog --format=json``);
- the text of ``flux job eventlog``: a time, the name, ``key=value`` with JSON values. The time is raw seconds, an
  offset, ISO 8601, or the human form (``[Dec01 14:18]``, then ``[  +0.013]`` from there; colour codes are dropped).
  The human form has neither year nor seconds: its times count from the first line's minute, and are only good to
  the minute from one ``[Dec01 14:18]`` to the next;
- the job manager's journal, many jobs interleaved: an event a line with ``id`` (and ``R`` on ``alloc``), or in its
  native form ``{"id", "events": [...], "R"?, "jobspec"?}``.

Files ending in ``.gz``, ``.xz`` and ``.zst`` are decompressed. Reading needs the extra ``[cli]``.
"""

from __future__ import annotations

import codecs
import gzip
import io
import json
import lzma
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn, TextIO, cast

import msgspec
from attrs import evolve

from .events import Alloc, Entry, Event, Malformed, looks_cut_short, make_event, to_context
from .idset import ALL_RANKS
from .resources import ResourceSet, ResourceSetError, ranks_of_summary

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["FORMS", "MAX_LINE", "LogError", "find_r", "open_log", "read_log", "read_r", "write_log"]

MAX_LINE: Final = 16 << 20
"""The longest line that is read, in bytes. A longer one is refused: memory stays bounded whatever comes."""

_MAX_DEPTH: Final = 100
_BLOCK: Final = 1 << 16  # bytes read at a time
_BRACE: Final = ord("{")
_NEWLINE: Final = ord("\n")
_ABSENT: Final = msgspec.Raw()
_tuple: Final = tuple.__new__  # makes an Entry, faster than its own constructor
_KNOWN_MOST: Final = 4096  # how many different events a reader remembers,
_LONGEST_KNOWN: Final = 200  # with contexts of how many bytes
_timestamp = attrgetter("timestamp")
_EXPECTED: Final = 'a JSON entry such as {"timestamp":1552593348.07,"name":"free"} (RFC 18)'
_EXPECTED_TEXT: Final = "a line of `flux job eventlog` such as 1552593348.07 finish status=0"

_NESTING: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)  # a string may be cut short
COLOUR: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_TEXT_LINE: Final = re.compile(r"(\[[^\]\[{]*\]|[^\s\[]\S*) +(\S+)(?: (.*))?")
_NUMBER: Final = re.compile(r"-?[0-9]{1,12}(?:\.[0-9]+)?", re.ASCII)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_OFFSET: Final = re.compile(r"\[ *([+-][0-9]{1,12}\.[0-9]+)\]", re.ASCII)
_YEAR: Final = timedelta(days=366)  # the human form has no year: all are taken for 2000, which was a leap year
_MINUTE: Final = re.compile(r"\[[A-Z][a-z]{2}[0-9]{2} [0-9]{2}:[0-9]{2}\]", re.ASCII)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(number: str) -> float:
    if math.isinf(value := float(number)):
        raise ValueError(f"{number} is out of range")
    return value


_JSON_VALUE: Final = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)


class LogError(Exception):
    """A log or R cannot be read. ``source`` and ``line`` (from 1; 0: the whole file) say where."""

    def __init__(self, source: str, line: int, message: str) -> None:
        super().__init__(source, line, message)
        self.source: Final = source
        self.line: Final = line
        self.message: Final = message

    def __str__(self) -> str:
        return f"{self.source}:{self.line}: {self.message}" if self.line else f"{self.source}: {self.message}"


def print_warning(message: str) -> None:
    print(f"warning: {message}", file=sys.stderr)


BROKEN_FILE: Final = (EOFError, OSError, lzma.LZMAError, zstd.ZstdError)
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def _why(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 text: {error.reason} at byte {error.start + 1}"
    if isinstance(error, RecursionError):
        return f"nested deeper than {_MAX_DEPTH} levels"
    if isinstance(error, BROKEN_FILE):
        return f"cannot be read from here on: {error}"
    if isinstance(error, msgspec.DecodeError):
        return f"not an eventlog entry: {error}; expected {_EXPECTED}"
    return str(error)


# -- files --


def open_log(path: str, on_read: Callable[[int], object] | None = None) -> BinaryIO:
    """Open a log: ``-`` is standard input; compressed files by their suffix.

    ``on_read`` is called with the number of bytes read from the file (before decompression), as they are
    read. Raises :class:`LogError` when the file cannot be opened.
    """
    if path == "-":
        if sys.stdin is None or sys.stdin.closed:
            raise LogError("<stdin>", 0, "standard input is closed")
        return sys.stdin.buffer
    try:
        raw: io.RawIOBase = io.FileIO(path)
    except OSError as error:
        raise LogError(path, 0, f"cannot be read: {error.strerror}") from None
    if on_read is not None:
        raw = _Counted(raw, on_read)
    packed: BinaryIO = io.BufferedReader(raw, 1 << 18)
    suffix = Path(path).suffix
    if suffix == ".gz":
        return _Unpacked(gzip.GzipFile(fileobj=packed), packed)
    if suffix == ".xz":
        return _Unpacked(lzma.LZMAFile(packed), packed)
    if suffix == ".zst":
        return _Unpacked(zstd.ZstdFile(packed), packed)
    return packed


class _Unpacked(io.BufferedReader):
    """A decompressed stream, which closes the file below it too."""

    def __init__(self, unpacked: object, packed: BinaryIO) -> None:
        super().__init__(cast(io.RawIOBase, unpacked))
        self._packed = packed

    def close(self) -> None:
        super().close()
        self._packed.close()


class _Counted(io.RawIOBase):
    def __init__(self, raw: io.RawIOBase, on_read: Callable[[int], object]) -> None:
        self._raw = raw
        self._on_read = on_read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        count = self._raw.readinto(buffer)
        self._on_read(count or 0)
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


def find_r(path: str) -> str | None:
    """The file ``NAME.R`` beside the log ``NAME.eventlog`` (or ``NAME.human.txt.gz``, and so on), if there is one."""
    log = Path(path)
    name = log.name
    for suffixes in (("gz", "xz", "zst"), ("eventlog", "json", "jsonl", "log", "ndjson", "txt"), ("human",)):
        stem, _, suffix = name.rpartition(".")
        if stem and suffix in suffixes:
            name = stem
    try:
        r = log.with_name(f"{name}.R")
        return str(r) if r != log and r.is_file() else None
    except (OSError, ValueError):  # such a file cannot be, or not be looked for
        return None


def read_r(path: str) -> ResourceSet:
    """Read a file that holds one R (RFC 20). Raises :class:`LogError`."""
    try:
        with open_log(path) as stream:
            text = stream.read(MAX_LINE + 1)
        if len(text) > MAX_LINE:
            raise LogError(path, 0, f"R is longer than {MAX_LINE >> 20} MiB")
        resources = ResourceSet.parse(text.removeprefix(codecs.BOM_UTF8))
        resources.hosts()
        return resources
    except (ResourceSetError, *BROKEN_FILE) as error:
        raise LogError(path, 0, _why(error)) from None


# -- reading --


class _Entry(msgspec.Struct, gc=False):
    timestamp: float
    name: str
    context: msgspec.Raw = _ABSENT
    id: int | None = None
    R: msgspec.Raw = _ABSENT


class _Message(msgspec.Struct, gc=False):
    id: int
    events: list[_Entry]
    R: msgspec.Raw = _ABSENT


_decode_entry = msgspec.json.Decoder(_Entry).decode
_decode_entries = msgspec.json.Decoder(_Entry).decode_lines
_decode_context = msgspec.json.Decoder(dict[str, Any]).decode
_decode_message = msgspec.json.Decoder(_Message).decode


class BadLineError(Exception):
    """A line is not an entry; the message says why and what was expected."""


def read_log(
    source: str,
    stream: BinaryIO | None = None,
    *,
    resources: ResourceSet | None = None,
    warn: Callable[[str], object] = print_warning,
) -> Iterator[Entry]:
    """The entries of one log file, in order.

    ``source`` is the path (or, with ``stream``, a name for messages). ``resources`` is the job's R, for a
    log that has none of its own. ``warn`` is told what is odd but not wrong, such as a last line cut short.
    Raises :class:`LogError` at the first line that is not an entry, and where there is no entry at all.
    """
    return chain.from_iterable(_LogReader(source, resources, warn).read(stream))


class _LogReader:
    """Reads one log, a block of whole lines at a time: quickly, if the block is of the most common form; if it is
    not, or something is wrong in it, line by line."""

    def __init__(self, source: str, resources: ResourceSet | None, warn: Callable[[str], object]) -> None:
        self._source = source
        self._warn = warn
        self._number = 0  # of the last line read
        self._found = False
        self._text = TextReader()
        self._maker = _EntryMaker(resources)

    def read(self, stream: BinaryIO | None) -> Iterator[Iterable[Entry]]:
        opened = open_log(self._source) if stream is None else stream
        try:
            for block in _blocks(opened):
                entries = self._at_once(block)
                if entries:
                    self._number += len(entries)
                    self._found = True
                    yield entries
                else:
                    yield self._line_by_line(block)
        except BROKEN_FILE as error:
            raise LogError(self._source, self._number + 1, _why(error)) from None
        finally:
            if stream is None:
                opened.close()
        if not self._found:
            raise LogError(self._source, 0, f"no events in it; expected {_EXPECTED}")

    def _at_once(self, block: bytes) -> list[Entry] | None:
        """The entries of a block that is one JSON entry a line; ``None`` if it is not, or is not in order."""
        lines = block.count(b"\n")
        # One entry a line: they all begin as the first does. (To look for more than a brace is quicker.)
        begin = b"\n" + block[:6]
        if block[0] != _BRACE or block[-1] != _NEWLINE or block.count(begin) != lines - 1 or not block.isascii():
            return None
        known, make = self._maker.known.get, self._maker.make
        try:
            decoded = _decode_entries(block)
            if len(decoded) != lines or min(map(_timestamp, decoded)) <= 0:
                return None
            return [
                _tuple(Entry, (number, entry.id, entry.timestamp, event, None))
                if (event := known((entry.name, bytes(entry.context))))
                else make(number, entry)
                for number, entry in enumerate(decoded, self._number + 1)
            ]
        except (BadLineError, ResourceSetError, *_UNREADABLE):
            return None

    def _line_by_line(self, block: bytes) -> Iterator[Entry]:
        raw = b""
        try:
            for raw in io.BytesIO(block):
                self._number += 1
                yield from self._line(raw)
        except (BadLineError, ResourceSetError, *_UNREADABLE) as error:
            if raw.endswith(b"\n") or len(raw) > MAX_LINE or isinstance(error, msgspec.ValidationError):
                raise LogError(self._source, self._number, _why(error)) from None
            cut = "the last line is cut short (a log still being written?) and was left out"
            self._warn(f"{self._source}:{self._number}: {cut}")

    def _line(self, raw: bytes) -> Iterator[Entry]:
        if len(raw) > MAX_LINE:
            raise BadLineError(f"longer than {MAX_LINE >> 20} MiB: not an eventlog; expected {_EXPECTED}")
        if b"\0" in raw:
            raise BadLineError(f"binary data; expected {_EXPECTED}")
        raw.decode()
        line = raw.removeprefix(codecs.BOM_UTF8).strip()
        if line.startswith(b"{"):
            check_depth(line)
            try:
                entries = [_decode_entry(line)]
            except msgspec.ValidationError as error:
                entries = _message_entries(line, error)
            self._found = True
            for entry in entries:
                yield self._maker.make(self._number, entry)
        elif line:
            time, name, context = self._text.read(line)
            check_depth(line)
            if not raw.endswith(b"\n") and looks_cut_short(name):
                raise BadLineError
            self._found = True
            yield self._maker.with_ranks(self._number, None, time, make_event(name, context))


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    """The stream in blocks of whole lines, as it comes. A line longer than any may be comes as it is by then."""
    read: Callable[[int], bytes] = getattr(stream, "read1", stream.read)
    rest = b""
    while data := read(max(_BLOCK, min(len(rest), 1 << 20))):
        end = data.rfind(b"\n") + 1
        if end:
            yield rest + data[:end]
            rest = data[end:]
        else:
            rest += data
            if len(rest) > MAX_LINE:
                yield rest
                return
    if rest:
        yield rest


class _EntryMaker:
    """Makes entries. Most events of a log say the same as one before, R aside: those it remembers."""

    def __init__(self, resources: ResourceSet | None) -> None:
        self._resources = resources
        self.known: dict[tuple[str, bytes], Event] = {}  # but for those that still need R's ranks
        self._allocs: dict[tuple[str, bytes], Event] = {}

    def make(self, line: int, entry: _Entry) -> Entry:
        time = entry.timestamp
        if time <= 0:
            raise BadLineError(f"timestamp {time} is not above zero; expected {_EXPECTED}")
        key = entry.name, bytes(entry.context)
        known = self._allocs if entry.name == "alloc" else self.known
        event = known.get(key)
        if event is None:
            check_depth(key[1])
            event = make_event(entry.name, _decode_context(key[1]) if key[1] else None)
            if len(key[1]) < _LONGEST_KNOWN:
                if len(known) >= _KNOWN_MOST:
                    known.clear()
                known[key] = event
        return self.with_ranks(line, entry.id, time, event, entry.R)

    def with_ranks(self, line: int, job: int | None, time: float, event: Event, r: msgspec.Raw = _ABSENT) -> Entry:
        """The entry of an event; of an ``alloc``, with the ranks of R from wherever R comes."""
        alloc = event.meant if isinstance(event, Malformed) else event
        if not isinstance(alloc, Alloc):
            return Entry(line, job, time, event)
        resources = ResourceSet.parse(r) if r else self._resources if job is None else None
        if resources is None and (ranks := ranks_of_summary(alloc.annotations)):
            resources = ResourceSet(ranks)
        if resources is None:
            return Entry(line, job, time, event)
        alloc = Alloc(resources.ranks, alloc.annotations, alloc.bypass, extra=alloc.extra)
        return Entry(line, job, time, evolve(event, meant=alloc) if isinstance(event, Malformed) else alloc, resources)


def check_depth(line: bytes) -> None:
    if len(line) > 2 * _MAX_DEPTH and line.count(b"{") + line.count(b"[") > _MAX_DEPTH:
        depth = 0
        for token in _NESTING.finditer(line):
            depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(token[0], 0)
            if depth > _MAX_DEPTH:
                raise RecursionError


def _message_entries(line: bytes, not_an_entry: msgspec.ValidationError) -> list[_Entry]:
    """The events of one message of the native journal, each with the message's id and R."""
    try:
        message = _decode_message(line)
    except msgspec.ValidationError as error:
        raise (error if b'"events"' in line else not_an_entry) from None
    for entry in message.events:
        entry.id = message.id
        entry.R = message.R
    return message.events


class TextReader:
    """Reads the lines of ``flux job eventlog``. The human form makes it remember the time."""

    def __init__(self) -> None:
        self._first: datetime | None = None  # the first line's minute
        self._years = 0  # since then
        self._minute: datetime | None = None  # the minute that `[  +0.013]` counts from
        self._base = 0.0  # that minute's time
        self._last = 0.0

    def read(self, line: bytes) -> tuple[float, str, dict[str, Any]]:
        text = COLOUR.sub("", line.decode())
        match = _TEXT_LINE.fullmatch(text)
        if match is None:
            hint = " (a JSON array? an eventlog has one entry a line)" if text == "[" or text.startswith("[{") else ""
            raise BadLineError(f"not an eventlog entry: {text[:40]!r}{hint}; expected {_EXPECTED}, or {_EXPECTED_TEXT}")
        time, name, context = match.groups()
        return self.time(time), name, _text_context(context or "")

    def time(self, text: str) -> float:
        if match := _OFFSET.fullmatch(text):
            self._last = self._base + float(match[1])
            return self._last
        if _MINUTE.fullmatch(text):
            return self._time_of_minute(text)
        try:
            if _NUMBER.fullmatch(text):
                return float(text)
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise BadLineError(f"not a time: {text[:40]!r}; expected {_EXPECTED_TEXT}") from None
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()

    def _time_of_minute(self, text: str) -> float:
        try:
            minute = datetime.strptime(f"2000 {text}", "%Y [%b%d %H:%M]")
        except ValueError:
            raise BadLineError(f"not a date: {text!r}; expected {_EXPECTED_TEXT}") from None
        if self._first is None:
            self._first = minute
        elif self._minute is not None and minute < self._minute:
            self._years += 1
        self._minute = minute
        # The seconds are not known, but no line is before the one above it.
        passed = minute - self._first + self._years * _YEAR
        self._base = max(self._last, passed.total_seconds())
        self._last = self._base
        return self._base


def _text_context(text: str) -> dict[str, Any]:
    context: dict[str, Any] = {}
    place = 0
    while place < len(text):
        equals = text.find("=", place)
        try:
            if equals <= place:
                raise ValueError
            value, end = _JSON_VALUE.raw_decode(text, equals + 1)
        except ValueError:
            raise BadLineError(f"not key=value: {text[place : place + 40]!r}; expected {_EXPECTED_TEXT}") from None
        if text[end : end + 1] not in ("", " "):
            raise BadLineError(f"not key=value: {text[place : place + 40]!r}; expected {_EXPECTED_TEXT}")
        context[text[place:equals]] = value
        place = end + 1
    if "\\u" in text and _SURROGATE.search(_compact(context)):
        raise BadLineError(f"half of a surrogate pair is no text; expected {_EXPECTED_TEXT}")
    return context


# -- writing --


def write_log(entries: Iterable[Entry], stream: TextIO, form: str = "json") -> None:
    """Write entries in one of the ``FORMS``; reading them again gives the same events.

    ``json`` and ``text`` are those of ``flux job eventlog``, ``human`` its ``-H`` (times in UTC, to be read again
    as offsets), ``journal`` an event a line with ``id`` and ``R``, ``native`` the job manager's own messages.
    Raises ``ValueError`` where a form cannot say it: a journal's entry without a job id, a name that text cannot have.
    """
    write = FORMS[form]()
    for entry in entries:
        stream.write(write(entry) + "\n")


# The names of events and keys that can be written as text.
_NAME: Final = re.compile(r"[^\s\0-\x1f\x7f]+")
_KEY: Final = re.compile(r"[^=\0-\x1f\x7f]+")


def _object(entry: Entry) -> dict[str, Any]:
    context = to_context(entry.event)
    head = {"timestamp": entry.timestamp, "name": entry.event.name}
    return head if context is None else {**head, "context": context}


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _write_json(entry: Entry) -> str:
    return _compact(_object(entry))


def _write_journal(entry: Entry) -> str:
    return _compact({"id": _id(entry), **_object(entry), **_r(entry)})


def _write_native(entry: Entry) -> str:
    return _compact({"id": _id(entry), "events": [_object(entry)], **_r(entry)})


def _id(entry: Entry) -> int:
    if entry.job is None:
        raise ValueError("a journal is written from entries that have a job id")
    return entry.job


def _r(entry: Entry) -> dict[str, Any]:
    event = entry.event.meant if isinstance(entry.event, Malformed) else entry.event
    if not isinstance(event, Alloc) or event.ranks == ALL_RANKS:
        return {}
    resources = entry.resources or ResourceSet(event.ranks)
    return {"R": resources.to_json()}


def _write_text(entry: Entry) -> str:
    return f"{entry.timestamp:.6f} {_named(entry.event)}"


def _named(event: Event) -> str:
    context = to_context(event) or {}
    odd = None if _NAME.fullmatch(event.name) else event.name
    odd = next((key for key in context if not _KEY.fullmatch(key)), odd)
    if odd is not None:
        raise ValueError(f"{odd!r} cannot be written in a form of text: use one of JSON")
    return " ".join([event.name, *(f"{key}={_compact(value)}" for key, value in context.items())])


def _human() -> Callable[[Entry], str]:
    base = minute = float("-inf")

    def write(entry: Entry) -> str:
        nonlocal base, minute
        time = entry.timestamp
        if time // 60 == minute:
            return f"[{time - base:+11.6f}] {_named(entry.event)}"
        base, minute = time, time // 60
        return f"[{datetime.fromtimestamp(time, UTC):%b%d %H:%M}] {_named(entry.event)}"

    return write


FORMS: Final[dict[str, Callable[[], Callable[[Entry], str]]]] = {
    "json": lambda: _write_json,
    "text": lambda: _write_text,
    "human": _human,
    "journal": lambda: _write_journal,
    "native": lambda: _write_native,
}
