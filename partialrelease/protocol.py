"""The line protocol by which an implementation is asked what it does (spec/protocol.md): its text, both ways.

A request is ``reset``, an event, or what is queued; an answer is the state that the job is in now, or a violation.
Nothing here runs anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

from attrs import evolve, frozen

from .events import Alloc, Event, PartialFree, make_event, to_context
from .idset import ALL_RANKS, IdSet, IdSetError
from .job import Code, Job, LastRank, decide, guard

__all__ = [
    "OPTIONAL",
    "SETS",
    "Answer",
    "GarbageError",
    "Queued",
    "Request",
    "Reset",
    "answer_line",
    "can_be_asked",
    "read_answer",
    "read_request",
    "request_line",
    "state_of",
]

SETS: Final = ("held", "referenced", "releasable", "released")
OPTIONAL: Final = ("referenced", "releasable", "post")
"""What an implementation may leave out of every answer."""


class GarbageError(ValueError):
    """A line that is not one of the protocol. The text says why, in a few words."""


@frozen
class Reset:
    """A new job."""

    last_rank: LastRank = LastRank.KEEP


@frozen
class Queued:
    """Events of these names were posted and are not applied yet."""

    names: tuple[str, ...] = ()


Request = Reset | Event | Queued
Post = tuple[str, IdSet] | None  # an event that the job manager posts: its name, and the ranks of a partial-free


@frozen
class Answer:
    """What an implementation says. ``code``: which violation; ``None`` where the event may happen.

    Else the state. A set, ``post`` or the code itself that is not said at all is not in ``said``.
    """

    said: frozenset[str]
    code: str | None = None
    phase: str = ""
    held: IdSet | None = None
    referenced: IdSet | None = None
    releasable: IdSet | None = None
    released: IdSet | None = None
    post: Post = None


_EVERY: Final = frozenset({"phase", *SETS, "post"})


def state_of(job: Job, queued: Iterable[str] = ()) -> Answer:
    """What there is to say of a job."""
    post = decide(job, [make_event(name) for name in queued])
    return Answer(
        _EVERY,
        None,
        job.phase.value,
        job.held,
        job.referenced,
        job.releasable,
        job.released,
        None if post is None else (post.name, post.ranks if isinstance(post, PartialFree) else IdSet()),
    )


# -- requests --

_ESCAPED: Final = re.compile("[%\x00-\x1f\x7f]")
_INTEGERS: Final = {"userid", "urgency", "flags", "version", "priority", "status", "severity"}
_INTEGER: Final = re.compile(r"-?[0-9]{1,18}").fullmatch
_BOOLEANS: Final = {"true": True, "false": False}


@lru_cache(1 << 14)  # vectors ask the same again and again
def request_line(request: Request) -> str:
    """The request's line, without its end."""
    match request:
        case Reset():
            return f"reset\tlast_rank={request.last_rank.value}"
        case Queued():
            return "\t".join(["queued", *request.names])
    fields = ["event", escape(request.name)]
    if isinstance(request, Alloc):
        fields.append(f"R={request.ranks}")
    context = to_context(request) or {}
    return "\t".join([*fields, *(f"{escape(key)}={_value(value)}" for key, value in context.items())])


def escape(text: str) -> str:
    """The text without control characters: they, and %, are %XX."""
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)


def _unescape(text: str) -> str:
    return re.sub("%([0-9A-F]{2})", lambda found: chr(int(found[1], 16)), text) if "%" in text else text


def _value(value: object) -> str:
    return escape(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":")))


@lru_cache(1 << 14)
def read_request(line: str) -> Request:
    """The request that a line is. Raises :class:`GarbageError`."""
    what, *fields = line.split("\t")
    if what == "queued":
        return Queued(tuple(fields))
    if what == "reset" and len(fields) == 1 and fields[0].startswith("last_rank="):
        try:
            return Reset(LastRank(fields[0].removeprefix("last_rank=")))
        except ValueError:
            raise GarbageError("last_rank is keep, defer or with-last") from None
    if what != "event" or not fields:
        raise GarbageError("a request is reset, event or queued")
    name, *pairs = map(_unescape, fields)
    context: dict[str, Any] = {}
    ranks = ALL_RANKS
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise GarbageError(f"a field without '=': {pair}")
        if key == "R" and name == "alloc":
            ranks = IdSet(text)
        else:
            context[key] = _read_value(key, text)
    return make_event(name, context, ranks)


def _read_value(key: str, text: str) -> Any:
    """A line says no types: they go by the key."""
    if key in _INTEGERS and _INTEGER(text):
        return int(text)
    if key in ("final", "bypass"):
        return _BOOLEANS.get(text, text)
    if key == "annotations":
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def can_be_asked(event: Event) -> bool:
    """Whether the event is the same once it was a line: one with an integer in the place of a text is not.

    (The type of keys that no rule knows is no matter.)
    """
    try:
        read = read_request(request_line(event))
    except (IdSetError, GarbageError):
        return False
    if not isinstance(read, Event) or _is_malformed(read):
        return _is_malformed(event)
    return evolve(read, extra={}) == evolve(event, extra={})


def _is_malformed(event: Event) -> bool:
    violation = guard(Job(), event)
    return violation is not None and violation.code is Code.MalformedContext


# -- answers --


def answer_line(answer: Answer) -> str:
    """The answer's line, without its end."""
    if answer.code is not None:
        return f"violation\t{answer.code}" if answer.code else "violation"
    said = [f"{name}={getattr(answer, name)}" for name in ("phase", *SETS) if name in answer.said]
    if "post" in answer.said:
        said.append(f"post={' '.join(map(str, answer.post)).rstrip() if answer.post else ''}")
    return "\t".join(["ok", *said])


def read_answer(line: str) -> Answer:
    """The answer that a line is. Raises :class:`GarbageError`."""
    what, *fields = line.split("\t")
    if what == "violation":
        if len(fields) > 1 or (fields and fields[0] not in Code.__members__):
            raise GarbageError(f"not a violation's code: {' '.join(fields)}")
        return Answer(frozenset({"code"}) if fields else frozenset(), fields[0] if fields else "")
    if what != "ok":
        raise GarbageError("an answer begins with 'ok' or 'violation', and a tab where more follows")
    values: dict[str, Any] = {}
    for field in fields:
        key, equals, text = field.partition("=")
        if not equals or key in values:
            raise GarbageError(f"{key!r} is said twice" if equals else f"a field without '=': {field!r}")
        if key in SETS:
            values[key] = _read_set(key, text)
        elif key == "post":
            values[key] = _read_post(text)
        else:
            values[key] = text
    for key in ("phase", "held", "released"):
        if key not in values:
            raise GarbageError(f"{key!r} is missing")
    said = frozenset(values) & _EVERY
    return Answer(said, **{key: values[key] for key in said})


def _read_set(key: str, text: str) -> IdSet:
    try:
        return IdSet(text)
    except IdSetError as error:
        raise GarbageError(f"{key!r} is {error}") from None


def _read_post(text: str) -> Post:
    name, _, ranks = text.partition(" ")
    if not text:
        return None
    if name not in ("free", "clean", "partial-free") or (name != "partial-free" and ranks):
        raise GarbageError(f"'post' is free, clean, partial-free and its ranks, or empty: not {text!r}")
    return name, _read_set("post", ranks)
