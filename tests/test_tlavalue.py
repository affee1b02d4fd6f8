"""Values of TLA+ are read as TLC prints them."""

import time

import pytest

from partialrelease.tlavalue import Function, Value, read_value, show_value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("TRUE", True),
        ("-12", -12),
        ('"a \\"b\\" \\\\"', 'a "b" \\'),
        ("r1", "r1"),
        ("{}", frozenset()),
        ("1..3", frozenset({1, 2, 3})),
        ("{1, {2},\n {}}", frozenset({1, frozenset({2}), frozenset()})),
        ("<< >>", Function()),
        ('<<"a", {3}>>', Function({1: "a", 2: frozenset({3})})),
        ("[ranks |-> {0}, early |-> FALSE]", Function({"ranks": frozenset({0}), "early": False})),
        ('("a" :> 1 @@ 2 :> <<>>)', Function({"a": 1, 2: Function()})),
    ],
)
def test_values_are_read_as_tlc_prints_them(text: str, value: Value) -> None:
    assert read_value(text) == value
    assert read_value(show_value(value)) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{1",
        "{1 2}",
        "0..999999999",
        "1..r2",
        "1 2",
        "[a = 1]",
        "(1 :> 2, 3 :> 4)",
        "?",
        '"a',
        '"a\\"',
        "{" * 100_000,
        "{,}",
        "<<1 2>>",
        "r1 r2",
        "(a |-> b)",
        "~",
        ">>",
        "{r1",
    ],
)
def test_what_is_no_value_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="TLA"):
        read_value(text)


def test_a_string_that_does_not_end_takes_no_longer_than_one_that_does() -> None:
    begin = time.process_time()
    with pytest.raises(ValueError, match="TLA"):
        read_value('"' + '\\"' * 30_000)
    assert time.process_time() - begin < 1
