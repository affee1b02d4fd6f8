"""The JSON Schema of spec/schema and the code agree on every context.

The schema cannot say two things. That an idset ascends, and where it ends, is the format ``idset``, which the tests
give the validator from a parser of their own. And to JSON Schema 1.0 is an integer: the validator here goes by the
text, as Flux and the code do.
"""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partialrelease import MAX_ID, IdSet, Malformed, make_event
from partialrelease.events import Event, Unknown

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "spec" / "schema"
SCHEMA: dict[str, Any] = json.loads((FOLDER / "events.schema.json").read_text())
VALID: list[dict[str, Any]] = [json.loads(line) for line in (FOLDER / "valid.ndjson").read_text().splitlines()]
INVALID: list[dict[str, Any]] = [json.loads(line) for line in (FOLDER / "invalid.ndjson").read_text().splitlines()]
EXAMPLES = [*VALID, *(each["entry"] for each in INVALID)]
VERDICTS = json.loads((ROOT / "tests" / "data" / "idset-verdicts.json").read_text())
KNOWN = {of.name: of for of in Event.__subclasses__() if of not in (Unknown, Malformed)}


def is_idset(text: object) -> bool:
    """What the format ``idset`` says beyond the pattern: ascending, and no rank above the largest."""
    if not isinstance(text, str):
        return True
    last = -1
    for element in text.removeprefix("[").removesuffix("]").split(",") if text not in ("", "[]") else []:
        numbers = [int(number) if number.isdecimal() else MAX_ID + 1 for number in element.split("-")]
        if len(numbers) > 2 or max(numbers) > MAX_ID or numbers[0] <= last or numbers[-1:] < numbers[:1]:
            return False
        if len(numbers) == 2 and numbers[0] == numbers[1]:
            return False
        last = numbers[-1]
    return True


FORMATS = jsonschema.FormatChecker(formats=())
FORMATS.checks("idset")(is_idset)
TYPES = jsonschema.Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
Validator = jsonschema.validators.extend(jsonschema.Draft202012Validator, type_checker=TYPES)


def verdicts(schema: dict[str, Any], *, formats: bool = True) -> list[bool]:
    validator = Validator(schema, format_checker=FORMATS if formats else None)
    return [validator.is_valid(entry) for entry in EXAMPLES]


def schema_takes(entry: dict[str, Any]) -> bool:
    return bool(Validator(SCHEMA, format_checker=FORMATS).is_valid(entry))


def code_takes(entry: dict[str, Any]) -> bool:
    return not isinstance(make_event(entry["name"], entry.get("context")), Malformed)


def test_the_schema_is_one() -> None:
    Validator.check_schema(SCHEMA)


@pytest.mark.requirement("PR-01", "PR-02", "PR-03", "PR-21", "PR-26", "PR-48")
@pytest.mark.parametrize("entry", VALID, ids=json.dumps)
def test_valid_examples_are_valid_to_schema_and_code(entry: dict[str, Any]) -> None:
    assert (schema_takes(entry), code_takes(entry)) == (True, True)


@pytest.mark.requirement("PR-02", "PR-03", "PR-26", "PR-48")
@pytest.mark.parametrize("example", INVALID, ids=json.dumps)
def test_invalid_examples_are_invalid_to_schema_and_code(example: dict[str, Any]) -> None:
    assert (schema_takes(example["entry"]), code_takes(example["entry"])) == (False, False)


def test_every_event_that_the_code_knows_has_examples_and_those_that_can_be_malformed_malformed_ones() -> None:
    assert {entry["name"] for entry in VALID} > set(KNOWN)
    malformed = {name for name in KNOWN if not code_takes({"name": name, "context": {"description": 0}})}
    malformed |= {name for name in KNOWN if not code_takes({"name": name})} | {"alloc"}
    assert {each["entry"]["name"] for each in INVALID} == malformed


# -- each part of the schema is needed --


def parts(schema: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where something stands in the schema that may be left out: a key of an object, or one of the keys required."""
    for key, value in schema.items() if isinstance(schema, dict) else enumerate(schema):
        if key != "$comment" and (key, value) != ("type", "object"):
            yield (*path, key)
        if isinstance(value, dict | list) and key != "enum":
            yield from parts(value, (*path, key))


def without(path: tuple[str | int, ...]) -> dict[str, Any]:
    schema = copy.deepcopy(SCHEMA)
    inner: Any = schema
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return schema


# What names a definition, and what only says what a writer writes.
PARTS = [path for path in parts(SCHEMA["$defs"], ("$defs",)) if len(path) > 2 and path[1] != "canonical-idset"]
OF_ALL = {formats: verdicts(SCHEMA, formats=formats) for formats in (True, False)}
PARTS += [("allOf", number) for number in range(len(SCHEMA["allOf"]))]


@pytest.mark.parametrize("path", PARTS, ids=lambda path: "/".join(map(str, path)))
def test_what_the_schema_says_is_missed_by_an_example_when_it_is_left_out(path: tuple[str | int, ...]) -> None:
    left_out = without(path)
    assert any(verdicts(left_out, formats=formats) != of_all for formats, of_all in OF_ALL.items())


# -- idsets --


@pytest.mark.requirement("PR-26")
def test_what_the_pattern_takes_beyond_the_parser_is_numbers_that_do_not_ascend_or_are_too_large() -> None:
    idset = {"$ref": "#/$defs/idset", "$defs": SCHEMA["$defs"]}
    pattern, both = Validator(idset), Validator(idset, format_checker=FORMATS)
    beyond = []
    for verdict in VERDICTS:
        text = verdict["in"]
        taken = _is_taken(text)
        assert both.is_valid(text) is taken, text
        assert pattern.is_valid(text) or not taken, text
        beyond += [text] if pattern.is_valid(text) and not taken else []
    assert beyond
    assert not any(map(is_idset, beyond))


def _is_taken(text: str) -> bool:
    try:
        IdSet(text)
    except ValueError:
        return False
    return True


@given(st.frozensets(st.integers(0, MAX_ID) | st.integers(0, 30)))
def test_what_is_written_is_canonical(ids: frozenset[int]) -> None:
    canonical = {"$ref": "#/$defs/canonical-idset", "$defs": SCHEMA["$defs"]}
    validator = Validator(canonical, format_checker=FORMATS)
    assert validator.is_valid(str(IdSet(ids)))
    assert not validator.is_valid(f"[{IdSet(ids)}]")


# -- any context --

IDS = st.sampled_from(["", "[]", "0", "0-3", "1,3-5", "[0-1]", "3,1", "0-0", "01", "4294967295", "0,", "all", "none"])
VALUES = st.one_of(
    st.integers(-1, 9), st.booleans(), st.none(), st.text(max_size=3), st.sampled_from([1.0, 0.5, [], {}, [0]]), IDS
)
LIKELY: dict[str, st.SearchStrategy[Any]] = {
    "ranks": IDS,
    "final": st.booleans(),
    "description": st.text(max_size=3),
    "status": st.integers(),
    "type": st.text(max_size=3),
    "severity": st.integers(-1, 8),
    "note": st.text(max_size=3),
    "annotations": st.just({}),
    "bypass": st.booleans(),
    "priority": st.integers(),
    "userid": st.integers(),
    "urgency": st.integers(),
    "flags": st.integers(),
    "version": st.integers(0, 2),
}


@st.composite
def entries(draw: st.DrawFn) -> dict[str, Any]:
    """Entries of any event, about half of them valid: most keys with values of their type."""
    name = draw(st.sampled_from([*KNOWN, "debug.x"]))
    keys = [key for key in KNOWN[name].__annotations__ if key in LIKELY] if name in KNOWN else []
    some = draw(st.lists(st.sampled_from(keys), unique=True)) if keys else []
    often = draw(st.sampled_from([keys, keys, some]))
    context: dict[str, Any] = {key: draw(LIKELY[key]) for key in often}
    if draw(st.sampled_from([True, False])):
        context[draw(st.sampled_from([*LIKELY, "other"]))] = draw(VALUES)
    return {"timestamp": 0.0, "name": name, **({"context": context} if context else {})}


@settings(max_examples=500)
@given(entries())
def test_schema_and_code_agree_on_any_context(entry: dict[str, Any]) -> None:
    # A key that is required is not there without a context: to the schema that must be said.
    with_context = {"context": {}, **entry}
    assert schema_takes(with_context) is code_takes(entry)
    assert schema_takes(entry) is code_takes(entry)


@pytest.mark.parametrize("valid", [True, False])
def test_any_context_is_valid_and_malformed_often_enough(valid: bool) -> None:
    seen = []

    @settings(max_examples=200, database=None)
    @given(entries())
    def count(entry: dict[str, Any]) -> None:
        seen.append(code_takes(entry) is valid)

    count()
    assert sum(seen) > 40
