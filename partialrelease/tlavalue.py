"""Values of TLA+ as TLC prints them, as Python values."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["Value", "read_value"]

Value = bool | int | str | tuple["Value", ...] | frozenset["Value"] | dict["Value", "Value"]
"""A model value such as ``r1`` is its name, and so is a string; a function or record is a ``dict``."""

_TOKEN: Final = re.compile(r'\s*("(?:[^"\\]|\\.)*"|<<|>>|:>|@@|\|->|-?\d+|\w+|[{}\[\](),])')


def read_value(text: str) -> Value:
    """The value that ``text`` is. Raises ``ValueError``. (An empty function looks as an empty tuple does: ``()``.)"""
    tokens: list[str] = []
    place = 0
    while place < len(text.rstrip()):
        match = _TOKEN.match(text, place)
        if match is None:
            raise ValueError(f"not a value of TLA+: {text[place : place + 40]!r}")
        tokens.append(match[1])
        place = match.end()
    tokens.reverse()
    try:
        value = _value(tokens)
    except IndexError:
        raise ValueError(f"a value of TLA+ that ends too early: {text[-40:]!r}") from None
    if tokens:
        raise ValueError(f"more than one value of TLA+: {text[:40]!r}")
    return value


def _value(tokens: list[str]) -> Value:
    token = tokens.pop()
    if token == "{":
        return frozenset(_values(tokens, "}"))
    if token == "<<":
        return tuple(_values(tokens, ">>"))
    if token == "[":
        return _pairs(tokens, "|->", ",", "]")
    if token == "(":
        return _pairs(tokens, ":>", "@@", ")")
    if token in ("TRUE", "FALSE"):
        return token == "TRUE"
    if token.startswith('"'):
        return re.sub(r"\\(.)", r"\1", token[1:-1])
    if token.lstrip("-").isdigit():
        return int(token)
    if not token[0].isalnum():
        raise ValueError(f"not a value of TLA+: it begins with {token!r}")
    return token


def _values(tokens: list[str], end: str) -> list[Value]:
    values: list[Value] = []
    while tokens[-1] != end:
        if values:
            _expect(tokens, ",")
        values.append(_value(tokens))
    tokens.pop()
    return values


def _pairs(tokens: list[str], arrow: str, between: str, end: str) -> dict[Value, Value]:
    pairs: dict[Value, Value] = {}
    while tokens[-1] != end:
        if pairs:
            _expect(tokens, between)
        key = _value(tokens)
        _expect(tokens, arrow)
        pairs[key] = _value(tokens)
    tokens.pop()
    return pairs


def _expect(tokens: list[str], token: str) -> None:
    if (found := tokens.pop()) != token:
        raise ValueError(f"not a value of TLA+: {found!r} where {token!r} was expected")
