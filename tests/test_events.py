"""A context becomes an event, and the event that context; what RFC 21 does not allow is Malformed, never an error."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import partialrelease
from partialrelease import (
    ALL_RANKS,
    NO_RANKS,
    Alloc,
    Clean,
    Depend,
    DependencyAdd,
    DependencyRemove,
    Entry,
    EpilogFinish,
    EpilogStart,
    Event,
    Finish,
    FluxRestart,
    Free,
    IdSet,
    Invalidate,
    JobException,
    JobspecUpdate,
    Malformed,
    Memo,
    PartialFree,
    Priority,
    PrologFinish,
    PrologStart,
    Release,
    ResourceUpdate,
    SetFlags,
    Start,
    Submit,
    Unknown,
    Urgency,
    Validate,
    looks_cut_short,
    make_event,
    to_context,
)

LOGS = sorted((Path(__file__).parent / "data" / "eventlogs").glob("*.eventlog"))

FEW = settings(max_examples=20, deadline=None)  # for each of many classes

JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5)),
    lambda of: st.lists(of, max_size=3) | st.dictionaries(st.text(max_size=5), of, max_size=3),
    max_leaves=5,
)
INTS = st.integers()
TEXT = st.text(max_size=8)
IDSETS = st.frozensets(st.integers(0, 40)).map(lambda ids: str(IdSet(ids)))
REALLY_ALL = st.one_of(IDSETS, st.just("all"))


class Key(NamedTuple):
    """A key of a context. ``default``: what an absent key reads as, and is then written; ``None``: not written."""

    values: st.SearchStrategy[Any]
    wrong: tuple[Any, ...]
    problem: str
    required: bool = True
    default: Any = None


NO_INTS: tuple[Any, ...] = (None, True, 1.0, "1", [], {})
NO_TEXTS: tuple[Any, ...] = (None, False, 0, 1.5, [], {})
NO_BOOLS: tuple[Any, ...] = (None, 0, 1, "true", [], {})
NO_OBJECTS: tuple[Any, ...] = (None, True, 0, "{}", [])

INT = Key(INTS, NO_INTS, "is not an integer")
STR = Key(TEXT, NO_TEXTS, "is not a string")
BOOL = Key(st.booleans(), NO_BOOLS, "is not true or false")
IDSET = Key(REALLY_ALL, (None, True, 0, [0], {}), "is not an idset")
FALSE = BOOL._replace(values=st.just(False))  # with a description, final must be false

# Every event that RFC 21 and the extensions know, with its keys in the order in which they are written.
KEYS: dict[type[Event], dict[str, Key]] = {
    Submit: {
        "userid": INT,
        "urgency": INT,
        "flags": INT,
        "version": Key(st.just(1), NO_INTS, "is not an integer", False, 1),
    },
    Validate: {},
    Invalidate: {},
    DependencyAdd: {},
    DependencyRemove: {},
    SetFlags: {},
    Memo: {},
    ResourceUpdate: {},
    Depend: {},
    Priority: {"priority": INT},
    Urgency: {},
    JobspecUpdate: {},
    FluxRestart: {},
    Alloc: {
        "annotations": Key(st.dictionaries(TEXT, JSON, max_size=3), NO_OBJECTS, "is not an object", False),
        "bypass": BOOL._replace(required=False),
    },
    PrologStart: {"description": STR},
    PrologFinish: {"description": STR, "status": INT},
    Start: {},
    Finish: {"status": INT},
    JobException: {
        "type": STR,
        "severity": INT._replace(values=st.integers(0, 7)),
        "note": STR._replace(required=False, default=""),
    },
    Release: {"ranks": IDSET, "final": FALSE, "description": STR._replace(required=False)},
    EpilogStart: {"description": STR, "ranks": IDSET._replace(required=False)},
    EpilogFinish: {"description": STR, "status": INT},
    PartialFree: {"ranks": IDSET._replace(values=IDSETS.filter(bool))},
    Free: {},
    Clean: {},
}
EMPTY = {Start, Free, Clean}
CLASSES = list(KEYS)


@st.composite
def contexts(draw: st.DrawFn, of: type[Event], *, extra: bool = True) -> dict[str, Any]:
    """A sound context, its keys in the order in which they are written: the known, then the others."""
    context = {
        name: draw(key.values)
        for name, key in KEYS[of].items()
        if key.required or key.default is not None or draw(st.booleans())
    }
    if extra and of not in EMPTY:
        unknown = draw(st.dictionaries(TEXT.filter(lambda name: name not in KEYS[of]), JSON, max_size=3))
        context.update(unknown)
    return context


def ordered(context: dict[str, Any] | None) -> str:
    return json.dumps(context)


def test_the_events_are_all_there() -> None:
    assert {*Event.__subclasses__()} == {*KEYS, Unknown, Malformed}
    assert len({of.name for of in KEYS}) == len(KEYS) == 25
    assert {of.__name__ for of in Event.__subclasses__()} <= set(partialrelease.__all__)


# -- there and back --


@pytest.mark.parametrize("of", CLASSES, ids=lambda of: of.name)
@FEW
@given(st.data())
def test_a_sound_context_makes_the_event_and_the_event_that_context(of: type[Event], data: st.DataObject) -> None:
    context = data.draw(contexts(of))
    event = make_event(of.name, context)
    assert type(event) is of
    assert ordered(to_context(event)) == ordered(context or None)
    assert make_event(of.name, to_context(event)) == event
    assert event.extra == {key: value for key, value in context.items() if key not in KEYS[of]}
    for name, value in context.items():
        if name in KEYS[of] and name != "ranks":
            assert getattr(event, name) == value


@pytest.mark.parametrize("of", CLASSES, ids=lambda of: of.name)
@FEW
@given(st.data())
def test_the_order_of_the_keys_means_nothing(of: type[Event], data: st.DataObject) -> None:
    context = data.draw(contexts(of))
    shuffled = dict(data.draw(st.permutations(list(context.items()))))
    assert make_event(of.name, shuffled) == make_event(of.name, context)


@pytest.mark.parametrize("of", CLASSES, ids=lambda of: of.name)
@FEW
@given(st.data())
def test_optional_keys_can_be_absent(of: type[Event], data: st.DataObject) -> None:
    context = data.draw(contexts(of))
    least = {name: value for name, value in context.items() if name not in KEYS[of] or KEYS[of][name].required}
    event = make_event(of.name, least)
    assert type(event) is of
    defaults = {name: key.default for name, key in KEYS[of].items() if not key.required}
    assert {name: getattr(event, name) for name in defaults} == defaults
    written = {name: value for name, value in defaults.items() if value is not None}
    assert (to_context(event) or {}) == least | written


@pytest.mark.requirement("PR-21")
@pytest.mark.parametrize("name", ["", "debug.foo", "annotations", "Start", "submit ", "epilog-release", "housekeeping"])
@given(st.dictionaries(TEXT, JSON, max_size=3))
def test_an_unknown_event_keeps_its_name_and_its_whole_context(name: str, context: dict[str, Any]) -> None:
    event = make_event(name, context)
    assert event == Unknown(name, extra=context)
    assert event.name == name
    assert ordered(to_context(event)) == ordered(context or None)


@pytest.mark.parametrize("of", CLASSES, ids=lambda of: of.name)
def test_no_context_is_an_empty_context(of: type[Event]) -> None:
    assert make_event(of.name) == make_event(of.name, None) == make_event(of.name, {})


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_recorded_contexts_are_written_as_they_were(log: Path) -> None:
    for line in log.read_text().splitlines():
        entry = json.loads(line)
        context = entry.get("context")
        event = make_event(entry["name"], context)
        assert event.name == entry["name"]
        assert ordered(to_context(event)) == ordered(context)
        if isinstance(event, Malformed):
            assert (log.stem, event.name) == ("H-free-context", "free")


def test_recorded_logs_are_there() -> None:
    assert len(LOGS) == 14


def test_no_event_knows_a_time() -> None:
    assert Entry(3, None, 1.5, Start()) == (3, None, 1.5, Start(), None)
    assert all("time" not in key for of in CLASSES for key in of.__annotations__)


# -- what the fields are --


@pytest.mark.requirement("PR-01", "PR-02", "PR-03")
def test_ranks_are_idsets_and_all_is_all_ranks() -> None:
    def ranks(name: str, **context: Any) -> IdSet | None:
        event = make_event(name, context)
        assert isinstance(event, Release | EpilogStart | PartialFree)
        return event.ranks

    assert ranks("release", ranks="all", final=True) is ALL_RANKS
    assert ranks("release", ranks="0-3,7", final=True) == IdSet("0-3,7")
    assert ranks("release", ranks="[0,1]", final=False) == IdSet("0-1")
    assert ranks("epilog-start", description="a", ranks="all") is ALL_RANKS
    assert ranks("epilog-start", description="a", ranks="") == NO_RANKS
    assert ranks("epilog-start", description="a") is None
    assert ranks("partial-free", ranks="2") == IdSet("2")


def test_a_partial_free_of_all_ids_is_not_written_as_all() -> None:
    event = PartialFree(ALL_RANKS)
    assert make_event(event.name, to_context(event)) == event


def test_the_ranks_of_alloc_are_rs_and_not_of_the_context() -> None:
    assert make_event("alloc", {}, IdSet("0-3")) == Alloc(IdSet("0-3"))
    assert make_event("alloc", {"bypass": True}) == Alloc(ALL_RANKS, bypass=True)
    assert to_context(Alloc(IdSet("0-3"))) is None
    assert make_event("alloc", {"ranks": "7"}, IdSet("0-3")) == Alloc(IdSet("0-3"), extra={"ranks": "7"})
    assert make_event("start", {}, IdSet("0-3")) == Start()
    event = make_event("alloc", {"bypass": 1}, IdSet("0-3"))
    assert isinstance(event, Malformed)
    assert event.meant == Alloc(IdSet("0-3"))


@pytest.mark.parametrize("of", CLASSES, ids=lambda of: of.name)
@FEW
@given(st.data())
def test_events_are_values(of: type[Event], data: st.DataObject) -> None:
    context = data.draw(contexts(of))
    event, again = make_event(of.name, context), make_event(of.name, json.loads(json.dumps(context)))
    assert event == again
    assert hash(event) == hash(again)
    with pytest.raises(AttributeError):
        event.extra = {}  # type: ignore[misc]
    other = make_event(of.name, context | {"another key": 1})
    assert event != other


# -- Malformed: every way --

MISSING = [(of, name) for of, keys in KEYS.items() for name, key in keys.items() if key.required]
WRONG = [(of, name) for of, keys in KEYS.items() for name in keys]


@pytest.mark.parametrize(("of", "name"), MISSING, ids=lambda of: getattr(of, "name", of))
@FEW
@given(st.data())
def test_a_required_key_that_is_missing_makes_it_malformed(of: type[Event], name: str, data: st.DataObject) -> None:
    context = data.draw(contexts(of))
    del context[name]
    event = make_event(of.name, context)
    assert isinstance(event, Malformed)
    assert (event.name, event.problem, event.extra) == (of.name, f"{name!r} is missing", context)
    assert ordered(to_context(event)) == ordered(context or None)


@pytest.mark.parametrize(("of", "name"), WRONG, ids=lambda of: getattr(of, "name", of))
@FEW
@given(st.data())
def test_a_key_of_the_wrong_type_makes_it_malformed(of: type[Event], name: str, data: st.DataObject) -> None:
    key = KEYS[of][name]
    context = data.draw(contexts(of)) | {name: data.draw(st.sampled_from(key.wrong))}
    event = make_event(of.name, context)
    assert isinstance(event, Malformed)
    assert (event.name, event.problem, event.extra) == (of.name, f"{name!r} {key.problem}", context)
    assert ordered(to_context(event)) == ordered(context)


@pytest.mark.requirement("PR-21")
@pytest.mark.parametrize("of", [of for of in CLASSES if of in EMPTY], ids=lambda of: of.name)
def test_a_context_that_must_be_empty_and_is_not_makes_it_malformed(of: type[Event]) -> None:
    event = make_event(of.name, {"ranks": "0"})
    assert event == Malformed(of.name, "its context is not empty", of(extra={"ranks": "0"}), extra={"ranks": "0"})


BAD = 'at character 1 ({!r}); expected ascending ids and ranges such as "0-3,7" (RFC 22)'


@pytest.mark.requirement("PR-25", "PR-48")
@pytest.mark.parametrize(
    ("name", "context", "problem", "meant"),
    [
        # Where the keys that matter are there, it is taken for what they say.
        ("submit", {}, "'userid' is missing; 'urgency' is missing; 'flags' is missing", Submit()),
        (
            "submit",
            {"userid": 5, "urgency": "x", "flags": 2},
            "'urgency' is not an integer",
            Submit(userid=5, flags=2),
        ),
        (
            "submit",
            {"userid": 0, "urgency": 16, "flags": 0, "version": 2},
            "its version is 2: only version 1 eventlogs are known",
            Submit(version=2),
        ),
        ("priority", {}, "'priority' is missing", Priority()),
        ("alloc", {"annotations": []}, "'annotations' is not an object", Alloc()),
        ("alloc", {"annotations": {"a": 1}, "bypass": 1}, "'bypass' is not true or false", Alloc(annotations={"a": 1})),
        ("prolog-finish", {"description": "p"}, "'status' is missing", PrologFinish("p")),
        ("epilog-finish", {"description": "e", "status": None}, "'status' is not an integer", EpilogFinish("e")),
        ("finish", {"status": 0.0, "more": 1}, "'status' is not an integer", Finish(extra={"more": 1})),
        ("free", {"final": False}, "its context is not empty", Free(extra={"final": False})),
        (
            "exception",
            {"type": "cancel", "severity": 8},
            "its severity 8 is not from 0 to 7",
            JobException("cancel", 8),
        ),
        (
            "exception",
            {"type": "cancel", "severity": -1, "note": "n"},
            "its severity -1 is not from 0 to 7",
            JobException("cancel", -1, "n"),
        ),
        (
            "exception",
            {"type": "cancel", "severity": 0, "note": 0},
            "'note' is not a string",
            JobException("cancel", 0),
        ),
        ("release", {"ranks": "0"}, "'final' is missing", Release(IdSet("0"))),
        ("release", {"final": True}, "'ranks' is missing", Release(final=True)),
        (
            "release",
            {"ranks": "x", "final": True},
            f"'ranks' is not an idset: an unexpected 'x' {BAD.format('x')}",
            Release(final=True),
        ),
        (
            "release",
            {"ranks": "0", "final": True, "description": "e"},
            "'final' is true: only the exec system's release can be final",
            Release(IdSet("0"), final=True, description="e"),
        ),
        (
            "release",
            {"ranks": "0", "final": False, "description": 1},
            "'description' is not a string",
            Release(IdSet("0")),
        ),
        (
            "epilog-start",
            {"description": "e", "ranks": "3-1"},
            f"'ranks' is not an idset: a range that does not ascend {BAD.format('3-1')}",
            EpilogStart("e"),
        ),
        ("epilog-start", {"description": "e", "ranks": None}, "'ranks' is not an idset", EpilogStart("e")),
        ("partial-free", {"ranks": ""}, "'ranks' is empty", PartialFree(NO_RANKS)),
        # Where they are not, it is taken for nothing.
        ("release", {"final": False}, "'ranks' is missing", None),
        (
            "release",
            {"ranks": "x"},
            f"'ranks' is not an idset: an unexpected 'x' {BAD.format('x')}; 'final' is missing",
            None,
        ),
        ("release", {"ranks": 0, "final": 0}, "'ranks' is not an idset; 'final' is not true or false", None),
        ("exception", {"severity": 0}, "'type' is missing", None),
        ("exception", {"type": "cancel", "severity": "0"}, "'severity' is not an integer", None),
        ("prolog-start", {}, "'description' is missing", None),
        ("prolog-finish", {"status": 0}, "'description' is missing", None),
        ("epilog-start", {"description": None}, "'description' is not a string", None),
        ("epilog-finish", {}, "'description' is missing; 'status' is missing", None),
        ("partial-free", {}, "'ranks' is missing", None),
        ("partial-free", {"ranks": [0]}, "'ranks' is not an idset", None),
        ("partial-free", {"ranks": "all"}, f"'ranks' is not an idset: an unexpected 'a' {BAD.format('all')}", None),
    ],
)
def test_a_malformed_event_says_what_is_wrong_and_what_it_is_taken_for(
    name: str, context: dict[str, Any], problem: str, meant: Event | None
) -> None:
    event = make_event(name, context)
    assert event == Malformed(name, problem, meant, extra=context)
    assert to_context(event) == (context or None)


@pytest.mark.parametrize("severity", [0, 7])
def test_severities_from_0_to_7_are_sound(severity: int) -> None:
    assert make_event("exception", {"type": "x", "severity": severity}) == JobException("x", severity)


@pytest.mark.parametrize("final", [False, True])
def test_the_exec_systems_release_may_be_final(final: bool) -> None:
    assert make_event("release", {"ranks": "0", "final": final}) == Release(IdSet("0"), final)


@pytest.mark.parametrize("of", CLASSES, ids=lambda of: of.name)
@FEW
@given(st.data())
def test_any_context_makes_an_event_that_is_written_as_it_was_or_completed(
    of: type[Event], data: st.DataObject
) -> None:
    names = st.one_of(st.sampled_from([*KEYS[of], "other"]), TEXT)
    values = st.one_of(JSON, st.sampled_from([0, True, "all", "0", "", "x", {}]))
    context = data.draw(st.dictionaries(names, values, max_size=5))
    event = make_event(of.name, context)
    written = to_context(event)
    assert event.name == of.name
    if isinstance(event, Malformed):
        assert event.problem
        assert event.meant is None or type(event.meant) is of
        assert ordered(written) == ordered(context or None)
        return
    assert type(event) is of
    defaults = {name: key.default for name, key in KEYS[of].items() if key.default is not None}
    idsets = {
        key: str(IdSet(context[key])) for key in ("ranks",) if key in KEYS[of] and context.get(key, "all") != "all"
    }
    assert (written or {}) == defaults | context | idsets


# -- names cut short --


def test_a_name_cut_short_is_a_beginning_that_is_no_event() -> None:
    names = {of.name for of in CLASSES}
    for name in names:
        assert not looks_cut_short(name)
        assert not looks_cut_short(f"{name}x")
        for length in range(len(name)):
            assert looks_cut_short(name[:length]) is (name[:length] not in names)
    assert looks_cut_short("")
    assert not looks_cut_short("debug.")
