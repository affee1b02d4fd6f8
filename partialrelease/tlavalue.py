"""Values of TLA+, as TLC prints them and as Python values.

A model value such as ``r1`` is its name, as a string is. A function (a record or tuple is one) is a :class:`Function`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final, TypeVar

__all__ = ["Function", "Value", "read_value", "show_value"]

Value = bool | int | str | frozenset[Any]


class Function(frozenset[Any]):
    """A function of TLA+ as the set of its pairs (argument, value): a record is one of strings, a tuple one of 1..n."""

    def __new__(cls, pairs: Mapping[Any, Any] | Iterable[tuple[Any, Any]] = ()) -> Function:
        return super().__new__(cls, pairs.items() if isinstance(pairs, Mapping) else pairs)


_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"')
# A string without an end takes all the rest, and is no value: to look for one at each quote takes too long.
_TOKEN = re.compile(_STRING.pattern + r'|"[\s\S]*|-?\d+|\w+|<<|>>|\|->|:>|@@|\.\.|\S')

_WIDEST: Final = 1 << 16  # interval: nothing of ours has as many ranks


@cache
def read_value(text: str) -> Value:
    """The value that TLC prints as ``text``. Raises :class:`ValueError` where it is none."""
    tokens = _TOKEN.findall(text)[::-1]
    try:
        value = _read(tokens)
    except IndexError:
        raise ValueError(f"not a whole TLA+ value: {text}") from None
    except RecursionError:
        raise ValueError("nested too deeply for a TLA+ value") from None
    if tokens:
        raise ValueError(f"not one TLA+ value: {text}")
    return value


def _read(tokens: list[str]) -> Value:
    token = tokens.pop()
    if token == "{":
        return frozenset(_items(tokens, _read, ",", "}"))
    if token == "<<":
        return Function(enumerate(_items(tokens, _read, ",", ">>"), 1))
    if token == "[":
        return Function(_items(tokens, _pair("|->"), ",", "]"))
    if token == "(":
        return Function(_items(tokens, _pair(":>"), "@@", ")"))
    if _STRING.fullmatch(token):
        return re.sub(r"\\(.)", r"\1", token[1:-1])
    if token in ("TRUE", "FALSE"):
        return token == "TRUE"
    if re.fullmatch(r"-?\d+", token):
        if tokens and tokens[-1] == "..":
            _, last = tokens.pop(), tokens.pop()
            if not re.fullmatch(r"-?\d+", last) or int(last) - int(token) > _WIDEST:
                raise ValueError(f"{token}..{last} is no interval of a TLA+ value")
            return frozenset(range(int(token), int(last) + 1))
        return int(token)
    if re.fullmatch(r"\w+", token):
        return token
    raise ValueError(f"not part of a TLA+ value: {token}")


T = TypeVar("T")


def _items(tokens: list[str], read: Callable[[list[str]], T], separator: str, end: str) -> Iterator[T]:
    if tokens[-1] != end:
        yield read(tokens)
        while tokens[-1] != end:
            _expect(tokens, separator)
            yield read(tokens)
    tokens.pop()


def _pair(arrow: str) -> Callable[[list[str]], tuple[Value, Value]]:
    def read(tokens: list[str]) -> tuple[Value, Value]:
        argument = _read(tokens)
        _expect(tokens, arrow)
        return argument, _read(tokens)

    return read


def _expect(tokens: list[str], wanted: str) -> None:
    if (token := tokens.pop()) != wanted:
        raise ValueError(f"{token} in a TLA+ value where {wanted} should be")


def show_value(value: Value) -> str:
    """The value as TLA+ text, always the same one."""
    if isinstance(value, Function):
        pairs = sorted((show_value(argument), show_value(of)) for argument, of in value)
        return f"({' @@ '.join(f'{argument} :> {of}' for argument, of in pairs)})" if pairs else "<<>>"
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(map(show_value, value)))}}}"
    if isinstance(value, str):
        return '"' + re.sub(r'(["\\])', r"\\\1", value) + '"'
    return str(value).upper()
