"""The events of a job (RFC 21 version 1, and three extensions) as values, and their contexts as JSON objects.

Each event is a frozen class with the keys that RFC 21 requires of it as fields. Keys that no rule knows are legal
and kept in ``extra``; an event that no rule knows is an :class:`Unknown`; one whose context is not what
RFC 21 says is a :class:`Malformed`, which says what is wrong and what a lenient reader would take it for.
Nothing here reads files or decides whether an event may happen.

The extensions, all backward compatible: ``ranks`` in ``epilog-start``, ``release`` with a ``description``,
and ``partial-free``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from attrs import Attribute, field, fields, frozen

from .idset import ALL_RANKS, IdSet, IdSetError

if TYPE_CHECKING:
    from .resources import ResourceSet

__all__ = [
    "Alloc",
    "Clean",
    "Depend",
    "DependencyAdd",
    "DependencyRemove",
    "Entry",
    "EpilogFinish",
    "EpilogStart",
    "Event",
    "Finish",
    "FluxRestart",
    "Free",
    "Invalidate",
    "JobException",
    "JobspecUpdate",
    "Malformed",
    "Memo",
    "PartialFree",
    "Priority",
    "PrologFinish",
    "PrologStart",
    "Release",
    "ResourceUpdate",
    "SetFlags",
    "Start",
    "Submit",
    "Unknown",
    "Urgency",
    "Validate",
    "looks_cut_short",
    "make_event",
    "to_context",
]

_NOTHING: Final[Mapping[str, Any]] = {}
_ABSENT: Final = object()
_KEY: Final = "type of the context key"
_OPTIONAL: Final = "whether RFC 21 lets the key be absent"


def _key(of: type, **settings: Any) -> Any:
    """A field that is a key of the context, and that RFC 21 requires. A default is for a reader that can do without."""
    return field(metadata={_KEY: of, _OPTIONAL: False}, **settings)


def _optional(of: type, default: Any) -> Any:
    return field(default=default, hash=of is not dict, metadata={_KEY: of, _OPTIONAL: True})


@frozen(slots=False)
class Event:
    """What all events have: ``extra``, the context keys that the event's own fields do not hold.

    An event has no time: the machine knows no clock. :class:`Entry` has.
    """

    name: ClassVar[str]

    extra: Mapping[str, Any] = field(default=_NOTHING, kw_only=True, hash=False, repr=False)


@frozen(slots=False)
class Submit(Event):
    """The job was submitted: always the first event (RFC 21 Submit Event)."""

    name = "submit"
    userid: int = _key(int, default=0)
    urgency: int = _key(int, default=16)
    flags: int = _key(int, default=0)
    version: int = _optional(int, 1)


@frozen(slots=False)
class Validate(Event):
    """The submission is valid."""

    name = "validate"


@frozen(slots=False)
class Invalidate(Event):
    """The submission is not valid; the job is removed."""

    name = "invalidate"


@frozen(slots=False)
class DependencyAdd(Event):
    """A dependency was added."""

    name = "dependency-add"


@frozen(slots=False)
class DependencyRemove(Event):
    """A dependency was removed."""

    name = "dependency-remove"


@frozen(slots=False)
class SetFlags(Event):
    """Flags were set."""

    name = "set-flags"


@frozen(slots=False)
class Memo(Event):
    """A note for users."""

    name = "memo"


@frozen(slots=False)
class ResourceUpdate(Event):
    """The expiration of R changed."""

    name = "resource-update"


@frozen(slots=False)
class Depend(Event):
    """All dependencies are met."""

    name = "depend"


@frozen(slots=False)
class Priority(Event):
    """The job has a priority (an integer)."""

    name = "priority"
    priority: int = _key(int, default=16)


@frozen(slots=False)
class Urgency(Event):
    """The urgency changed."""

    name = "urgency"


@frozen(slots=False)
class JobspecUpdate(Event):
    """The jobspec changed."""

    name = "jobspec-update"


@frozen(slots=False)
class FluxRestart(Event):
    """The job manager restarted."""

    name = "flux-restart"


@frozen(slots=False)
class Alloc(Event):
    """The scheduler granted R. ``ranks`` are R's ranks, which the eventlog itself does not have.

    ``ALL_RANKS`` stands for an R that is not known.
    """

    name = "alloc"
    ranks: IdSet = ALL_RANKS
    annotations: Mapping[str, Any] | None = _optional(dict, None)
    bypass: bool | None = _optional(bool, None)


@frozen(slots=False)
class PrologStart(Event):
    """A prolog action started; it references all ranks."""

    name = "prolog-start"
    description: str = _key(str)


@frozen(slots=False)
class PrologFinish(Event):
    """A prolog action finished. ``status`` 0 is success."""

    name = "prolog-finish"
    description: str = _key(str)
    status: int = _key(int, default=0)


@frozen(slots=False)
class Start(Event):
    """The job shells have started."""

    name = "start"


@frozen(slots=False)
class Finish(Event):
    """The job shells have exited. ``status`` is a wait status."""

    name = "finish"
    status: int = _key(int, default=0)


@frozen(slots=False)
class JobException(Event):
    """An exception. ``severity`` is 0 (fatal) to 7."""

    name = "exception"
    type: str = _key(str)
    severity: int = _key(int)
    note: str = _optional(str, "")


@frozen(slots=False)
class Release(Event):
    """A holder drops ``ranks`` (``ALL_RANKS`` for "all": what it still has).

    Without a ``description`` the holder is the exec system, and ``final`` ends it. *Extension*: with a
    ``description`` it is that epilog, and ``final`` is false.
    """

    name = "release"
    ranks: IdSet = _key(IdSet, default=ALL_RANKS)
    final: bool = _key(bool, default=False)
    description: str | None = _optional(str, None)


@frozen(slots=False)
class EpilogStart(Event):
    """An epilog action started.

    *Extension* ``ranks``: what it references; ``None`` (not said) and ``ALL_RANKS`` ("all") mean every rank that
    the job holds now, the empty set means none.
    """

    name = "epilog-start"
    description: str = _key(str)
    ranks: IdSet | None = _optional(IdSet, None)


@frozen(slots=False)
class EpilogFinish(Event):
    """An epilog action finished, and drops everything. ``status`` 0 is success."""

    name = "epilog-finish"
    description: str = _key(str)
    status: int = _key(int, default=0)


@frozen(slots=False)
class PartialFree(Event):
    """*Extension*: ``ranks`` are handed over while some holder is still active."""

    name = "partial-free"
    ranks: IdSet = _key(IdSet)


@frozen(slots=False)
class Free(Event):
    """Everything that is still held is handed over; it is final."""

    name = "free"


@frozen(slots=False)
class Clean(Event):
    """The job becomes INACTIVE."""

    name = "clean"


@frozen(slots=False)
class Unknown(Event):
    """An event that no rule knows (``debug.*``, ``annotations``, a plugin's own): legal, changes nothing."""

    name: str  # type: ignore[misc]  # here the name is a field


@frozen(slots=False)
class Malformed(Event):
    """An event whose context is not what RFC 21 (or an extension) says.

    ``problem`` says what is wrong, in a user's words. ``meant`` is what a reader takes it for who looks only at the
    keys that it cannot do without, as Flux does; ``None`` where even these are missing. ``extra`` is the whole context.
    """

    name: str  # type: ignore[misc]  # here the name is a field
    problem: str
    meant: Event | None = None


class Entry(NamedTuple):
    """One event of a log (RFC 18).

    ``line``: where it stands, from 1. ``job``: the job's id, where the log says. ``timestamp``: seconds since the
    epoch. ``resources``: R, where the event is an ``alloc`` and R is known.
    """

    line: int
    job: int | None
    timestamp: float
    event: Event
    resources: ResourceSet | None = None


# -- contexts: from and to the JSON object of an entry --

_EVENTS: Final[tuple[type[Event], ...]] = (
    Submit,
    Validate,
    Invalidate,
    DependencyAdd,
    DependencyRemove,
    SetFlags,
    Memo,
    ResourceUpdate,
    Depend,
    Priority,
    Urgency,
    JobspecUpdate,
    FluxRestart,
    Alloc,
    PrologStart,
    PrologFinish,
    Start,
    Finish,
    JobException,
    Release,
    EpilogStart,
    EpilogFinish,
    PartialFree,
    Free,
    Clean,
)
_EMPTY: Final = frozenset({Start, Free, Clean})  # RFC 21: "the context SHALL be empty"


def _keys(event: type[Event]) -> tuple[Attribute[Any], ...]:
    return tuple(attribute for attribute in fields(event) if _KEY in attribute.metadata)


_KEYS: Final = {event: _keys(event) for event in _EVENTS}
_BY_NAME: Final = {
    event.name: (
        event,
        tuple((key.name, key.metadata[_KEY], key.metadata[_OPTIONAL]) for key in _KEYS[event]),
    )
    for event in _EVENTS
}
_WORDS: Final = {
    int: "an integer",
    str: "a string",
    bool: "true or false",
    dict: "an object",
    IdSet: "an idset",
}


def make_event(name: str, context: Mapping[str, Any] | None = None, ranks: IdSet = ALL_RANKS) -> Event:
    """The event that an eventlog entry of this name and context object (or none) is (RFC 18).

    ``ranks`` are those of R, for an ``alloc``. Never raises: an unknown name makes an
    :class:`Unknown`, a context that is not as RFC 21 says a :class:`Malformed`.
    """
    context = context or _NOTHING
    known = _BY_NAME.get(name)
    if known is None:
        return Unknown(name, extra=context)
    event, keys = known
    values: dict[str, Any] = {"ranks": ranks} if event is Alloc else {}
    problems: list[str] = []
    _read_keys(event, keys, context, values, problems)
    if problems or not _sound(event, values, problems):
        return Malformed(name, "; ".join(problems), _meant(event, values), extra=context)
    return event(**values)


def _read_keys(
    event: type[Event],
    keys: tuple[tuple[str, type, bool], ...],
    context: Mapping[str, Any],
    values: dict[str, Any],
    problems: list[str],
) -> None:
    seen = 0
    for key, kind, optional in keys:
        value = context.get(key, _ABSENT)
        if type(value) is kind:
            values[key] = value
        elif value is _ABSENT:
            seen -= 1
            if not optional:
                problems.append(f"{key!r} is missing")
        elif kind is IdSet and value == "all" and event is not PartialFree:
            values[key] = ALL_RANKS
        elif kind is IdSet and type(value) is str:
            try:
                values[key] = IdSet(value)
            except IdSetError as error:
                problems.append(f"{key!r} is {error}")
        else:
            problems.append(f"{key!r} is not {_WORDS[kind]}")
        seen += 1
    if seen < len(context):
        names = {key for key, _, _ in keys}
        values["extra"] = {key: value for key, value in context.items() if key not in names}
        if event in _EMPTY:
            problems.append("its context is not empty")


def _sound(event: type[Event], values: dict[str, Any], problems: list[str]) -> bool:
    """What one key alone cannot tell."""
    if event is Submit and values.get("version", 1) != 1:
        problems.append(f"its version is {values['version']}: only version 1 eventlogs are known")
    elif event is JobException and not 0 <= values["severity"] <= 7:
        problems.append(f"its severity {values['severity']} is not from 0 to 7")
    elif event is Release and values["final"] and "description" in values:
        problems.append("'final' is true: only the exec system's release can be final")
    elif event is PartialFree and not values["ranks"]:
        problems.append("'ranks' is empty")
    return not problems


def _meant(event: type[Event], values: dict[str, Any]) -> Event | None:
    if event is Release and "ranks" not in values and not values.get("final"):
        return None  # nobody can tell which ranks it drops
    try:
        return event(**values)
    except TypeError:  # a key is missing that has no default
        return None


def looks_cut_short(name: str) -> bool:
    """Whether ``name`` is no event's name but the beginning of one, as in a line still being written."""
    return name not in _BY_NAME and any(known.startswith(name) for known in _BY_NAME)


def to_context(event: Event) -> dict[str, Any] | None:
    """The context object of the event's eventlog entry, or ``None`` where it has none.

    The way back from :func:`make_event`.
    """
    context: dict[str, Any] = {}
    for key in _KEYS.get(type(event), ()):
        value = getattr(event, key.name)
        if isinstance(value, IdSet):
            value = "all" if value == ALL_RANKS and type(event) is not PartialFree else str(value)
        if value is not None:
            context[key.name] = value
    context.update(event.extra)
    return context or None
