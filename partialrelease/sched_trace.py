"""Read what was traced of a scheduler: the messages of the resource allocation protocol (RFC 27). Streamed.

Two forms, told apart by the first line:

- what ``flux module trace --full sched-simple`` prints (or ``sched-fluxion-qmanager``, or ``job-manager``): a line with
  the time, module, direction, topic, size and status, then the payload as JSON over several lines;
- JSON lines, an object a message with the keys of a response of the broker's own ``module.trace`` service:
  ``timestamp``, ``type`` (1, ">" or "request"; 2, "<" or "response"), ``topic``, and where there are such, ``payload``,
  ``prefix`` ("rx", "tx"), ``name``, ``errnum``. Others are ignored.

Messages of other topics are left out, and counted. So are those that a trace of both the scheduler and the job manager
has twice. Reading needs the extra ``[cli]``.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final, Literal

import msgspec
from attrs import define, field

from .eventlog import (
    BROKEN_FILE,
    COLOUR,
    BadLineError,
    LogError,
    TextReader,
    check_depth,
    open_log,
    print_warning,
)
from .idset import IdSet, IdSetError
from .resources import ResourceSet, ResourceSetError
from .sched_check import (
    AllocEnd,
    AllocGrant,
    AllocRequest,
    FreeRequest,
    HelloEnd,
    HelloJob,
    HelloRequest,
    SchedDrop,
    SchedMessage,
)

__all__ = ["MAX_MESSAGE", "TraceReader", "read_trace"]

MAX_MESSAGE: Final = 64 << 20
"""The longest message that is read, in bytes."""

_EXPECTED: Final = (
    "a line of `flux module trace --full` such as 2026-12-01T14:19:46.315 sched-simple rx > sched.alloc [523]"
)
_EXPECTED_JSON: Final = 'a JSON line such as {"timestamp":1796134786.3,"type":">","topic":"sched.free","payload":{...}}'
_HEADER: Final = re.compile(
    r"(?P<time>\[[^\]]*\]|[0-9]\S*) +(?:(?P<name>\S+) +)?(?P<prefix>rx|tx) (?P<kind>\S) (?P<topic>\S.*?)? "
    r"\[(?P<size>[^\[\]]*)\](?: (?P<status>.+))?"
)
_KINDS: Final = {1: ">", 2: "<", "request": ">", "response": "<", ">": ">", "<": "<"}
_ENODATA: Final = 61
_ABSENT: Final = msgspec.Raw()


class _Line(msgspec.Struct, gc=False):
    timestamp: float
    topic: str
    type: int | str
    payload: msgspec.Raw = _ABSENT
    prefix: str | None = None
    errnum: int = 0


class _AllocRequest(msgspec.Struct, gc=False):
    id: int
    t_submit: float | None = None


class _AllocResponse(msgspec.Struct, gc=False):
    id: int
    type: Literal[0, 1, 2, 3]
    R: msgspec.Raw = _ABSENT


class _Free(msgspec.Struct, gc=False):
    id: int
    R: msgspec.Raw
    final: bool = False


class _HelloRequest(msgspec.Struct, gc=False, rename="kebab"):
    partial_ok: bool = False


class _HelloJob(msgspec.Struct, gc=False):
    id: int
    t_submit: float | None = None
    free: str | None = None


class _Raise(msgspec.Struct, gc=False):
    id: int
    type: str
    severity: int


_PAYLOADS: Final = {
    (topic, kind): msgspec.json.Decoder(payload).decode
    for topic, kind, payload in (
        ("sched.alloc", ">", _AllocRequest),
        ("sched.alloc", "<", _AllocResponse),
        ("sched.free", ">", _Free),
        ("job-manager.sched-hello", ">", _HelloRequest),
        ("job-manager.sched-hello", "<", _HelloJob),
        ("job-manager.raise", ">", _Raise),
    )
}
_decode_line = msgspec.json.Decoder(_Line).decode


class _BadMessageError(Exception):
    """It says why and what was expected."""


@define
class _Header:
    line: int
    time: float
    prefix: str | None
    kind: str
    topic: str
    failed: str | None = None  # the error of a response
    empty: bool = False  # it is known to have no payload

    @property
    def is_ours(self) -> bool:
        return (self.topic, self.kind) in _PAYLOADS

    def __str__(self) -> str:
        return f"{self.topic} {'request' if self.kind == '>' else 'response'}"


def read_trace(
    source: str, stream: BinaryIO | None = None, *, warn: Callable[[str], object] = print_warning
) -> TraceReader:
    """The messages of a trace, to be iterated over once.

    ``source`` is the path (or, with ``stream``, a name for messages). Iterating raises :class:`LogError` at the first
    line that is wrong, and where there is no message at all. ``warn`` is told when the last message is cut short.
    """
    return TraceReader(source, stream, warn)


@define
class TraceReader:
    """An iterator over the messages of one trace. ``others``: how many messages it has left out so far."""

    source: str
    stream: BinaryIO | None
    warn: Callable[[str], object]
    others: int = 0
    _number: int = 0
    _found: bool = False
    _full: bool = False  # payloads were traced
    _scheduler_side: bool | None = None
    _clock: TextReader = field(factory=TextReader)

    def __iter__(self) -> Iterator[SchedMessage]:
        stream = open_log(self.source) if self.stream is None else self.stream
        try:
            yield from self._messages(self._lines(stream))
        except (_BadMessageError, *BROKEN_FILE) as error:
            why = str(error) if isinstance(error, _BadMessageError) else f"cannot be read from here on: {error}"
            raise LogError(self.source, self._number, why) from None
        finally:
            if self.stream is None:
                stream.close()
        if not self._found:
            raise LogError(self.source, 0, f"no messages in it; expected {_EXPECTED}, or {_EXPECTED_JSON}")

    def _lines(self, stream: BinaryIO) -> Iterator[bytes]:
        while raw := stream.readline(MAX_MESSAGE + 1):
            self._number += 1
            if len(raw) > MAX_MESSAGE:
                raise _BadMessageError(f"longer than {MAX_MESSAGE >> 20} MiB; expected {_EXPECTED}")
            if self._number == 1:
                raw = raw.removeprefix(codecs.BOM_UTF8)
            if not raw.isspace():
                yield raw

    def _messages(self, lines: Iterator[bytes]) -> Iterator[SchedMessage]:
        first = next(lines, b"")
        if first.startswith(b"{"):
            yield from self._json_line(first)
            for raw in lines:
                yield from self._json_line(raw)
        elif first:
            yield from self._printed(first, lines)

    # -- JSON lines --

    def _json_line(self, raw: bytes) -> Iterator[SchedMessage]:
        try:
            check_depth(raw)
            line = _decode_line(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            if not raw.endswith(b"\n") and not isinstance(error, msgspec.ValidationError):
                self._warn_cut()
                return
            raise _BadMessageError(f"not a message: {error}; expected {_EXPECTED_JSON}") from None
        kind = _KINDS.get(line.type, "?")
        failed = None
        if line.errnum:
            failed = "ENODATA" if line.errnum == _ENODATA else f"errno {line.errnum}"
        payload = bytes(line.payload)
        header = _Header(self._number, line.timestamp, line.prefix, kind, line.topic, failed, empty=not payload)
        yield from self._make(header, payload)

    # -- as `flux module trace --full` prints it --

    def _printed(self, raw: bytes, lines: Iterator[bytes]) -> Iterator[SchedMessage]:
        header = self._header(raw)
        if header is None:
            raise _BadMessageError(f"not a message: {raw[:40].decode(errors='replace')!r}; expected {_EXPECTED}")
        payload: list[bytes] = []
        size = 0
        cut = False
        for raw in lines:
            plain = COLOUR.sub("", raw.decode(errors="replace")).encode() if b"\x1b" in raw else raw
            if (following := self._header(plain)) is not None:
                yield from self._make(header, b"".join(payload))
                header, payload, size = following, [], 0
            elif plain[:1] in b" {}[]" or header.failed or not plain.strip():
                size += len(plain)
                if size > MAX_MESSAGE:
                    raise _BadMessageError(f"a message longer than {MAX_MESSAGE >> 20} MiB")
                if header.is_ours:
                    payload.append(plain)
            elif raw.endswith(b"\n"):
                shown = plain[:40].decode(errors="replace")
                raise _BadMessageError(f"not a message: {shown!r}; expected {_EXPECTED}, or a line of JSON")
            else:
                cut = True
        if cut:
            self._warn_cut()
        yield from self._make(header, b"".join(payload), last=not cut)

    def _header(self, raw: bytes) -> _Header | None:
        if raw[:1] in b" {}]":
            return None
        match = _HEADER.fullmatch(COLOUR.sub("", raw.decode(errors="replace")).strip())
        if match is None:
            return None
        try:
            time = self._clock.time(match["time"])
        except BadLineError:
            raise _BadMessageError(f"not a time: {match['time']!r}; expected {_EXPECTED}") from None
        failed = None if match["status"] in (None, "success") else match["status"]
        empty = match["size"] == "0"
        return _Header(self._number, time, match["prefix"], match["kind"], match["topic"] or "", failed, empty)

    # -- both --

    def _warn_cut(self) -> None:
        cut = "the last message is cut short (a trace still being written?) and was left out"
        self.warn(f"{self.source}:{self._number}: {cut}")

    def _make(self, header: _Header, payload: bytes, *, last: bool = False) -> Iterator[SchedMessage]:
        self._found = True
        if header.is_ours and header.prefix is not None:
            # `sched.free` is received by the scheduler, and sent by the job manager.
            to_scheduler = header.topic.startswith("sched.") is (header.kind == ">")
            scheduler_side = to_scheduler is (header.prefix == "rx")
            if self._scheduler_side is None:
                self._scheduler_side = scheduler_side
            if self._scheduler_side is not scheduler_side:
                self.others += 1
                return
        try:
            body = self._body(header, payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, IdSetError, ResourceSetError) as error:
            cut = isinstance(error, msgspec.DecodeError) and not isinstance(error, msgspec.ValidationError)
            if last and (cut or (self._full and not payload)):
                self._warn_cut()
                return
            self._number = header.line
            raise _BadMessageError(f"not a {header} (RFC 27): {error}") from None
        self._full = self._full or bool(payload)
        if body is None:
            self.others += 1
        else:
            yield SchedMessage(header.line, header.time, body)

    def _body(self, header: _Header, payload: bytes) -> Any:
        decode = _PAYLOADS.get((header.topic, header.kind))
        if decode is None:
            return None
        if header.failed:
            hello = header.topic == "job-manager.sched-hello"
            return HelloEnd(header.failed in ("ENODATA", f"errno {_ENODATA}")) if hello else None
        if not payload:
            if header.topic == "job-manager.sched-hello" and header.kind == ">" and header.empty:
                return HelloRequest()
            raise ResourceSetError("it has no payload; trace with `flux module trace --full`")
        payload.decode()
        check_depth(payload)
        return _make_body(decode(payload))


def _make_body(message: object) -> Any:
    match message:
        case _AllocRequest():
            return AllocRequest(message.id, message.t_submit)
        case _AllocResponse(type=0):
            if not message.R:
                return AllocGrant(message.id, None)
            r = ResourceSet.parse(message.R)
            return AllocGrant(message.id, r.cores(), ResourceSet(r.ranks, r.nodelist), r.starttime())
        case _AllocResponse(type=1):
            return None  # annotations
        case _AllocResponse():
            return AllocEnd(message.id)
        case _Free():
            r = ResourceSet.parse(message.R, may_be_empty=True)
            return FreeRequest(message.id, r.cores(), message.final, r.starttime())
        case _HelloRequest():
            return HelloRequest(message.partial_ok)
        case _HelloJob():
            return HelloJob(message.id, None if message.free is None else IdSet(message.free), message.t_submit)
        case _Raise(type="scheduler-restart", severity=0):
            return SchedDrop(message.id)
    return None
