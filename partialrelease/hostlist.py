"""Host names in order, with the text form of RFC 29: ``node[0-3,7]``, ``vm,vm``.

A :class:`Hostlist` keeps the text's ranges as ranges and never spells them out, so that ``n[0-999999999]``
costs as much as ``n[0-1]``. Order and repeats are kept: the k-th host is that of the k-th rank of R.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from attrs import frozen

__all__ = ["Hostlist", "HostlistError"]

_EXPRESSION: Final = re.compile(r"([^\[\],]*)(?:\[([^\[\]]*)\]([^\[\],]*))?(,|$)")
_ELEMENT: Final = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")
_TRAILING: Final = re.compile(r"(.*?)([0-9]{1,18})", re.DOTALL)


class HostlistError(ValueError):
    """A text is not an RFC 29 hostlist. The message names the place."""


@frozen
class _Hosts:
    """Hosts in a row: ``prefix``, each number from ``low`` to ``high`` padded to ``width``, ``suffix``.

    A name without a number has ``width`` 0, and ``low`` and ``high`` 0.
    """

    prefix: str
    low: int = 0
    high: int = 0
    width: int = 0
    suffix: str = ""

    @property
    def count(self) -> int:
        return self.high - self.low + 1

    def part(self, first: int, last: int) -> _Hosts:
        """The hosts at positions ``first`` to ``last`` of these."""
        return _Hosts(self.prefix, self.low + first, self.low + last, self.width, self.suffix)

    def numbers(self) -> str:
        low = f"{self.low:0{self.width}d}"
        return low if self.low == self.high else f"{low}-{self.high:0{self.width}d}"

    def find(self, name: str) -> int | None:
        """The position of ``name`` among these, or ``None``."""
        if not self.width:
            return 0 if name == self.prefix else None
        number = name.removeprefix(self.prefix).removesuffix(self.suffix)
        if not (number.isascii() and number.isdecimal() and len(number) <= 18):
            return None
        position = int(number) - self.low
        found = 0 <= position < self.count and name == f"{self.prefix}{int(number):0{self.width}d}{self.suffix}"
        return position if found else None


@frozen
class Hostlist:
    """An ordered list of host names. ``Hostlist.parse`` reads RFC 29 text, ``str()`` writes it."""

    rows: tuple[_Hosts, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Hostlist:
        """Raises :class:`HostlistError` when ``text`` is not an RFC 29 hostlist."""
        if odd := re.search(r"[^!-~]", text):
            raise HostlistError(f"not a hostlist: an unexpected {odd[0]!r} at character {odd.start() + 1}")
        return cls(tuple(_rows(text)))

    @property
    def count(self) -> int:
        """How many hosts: a property, since ``len`` ends at ``sys.maxsize`` and a hostlist does not."""
        return sum(row.count for row in self.rows)

    def take(self, spans: Iterable[tuple[int, int]]) -> Hostlist:
        """The hosts at these positions: ascending spans, each (first, last), counted from 0."""
        taken: list[_Hosts] = []
        rows = iter(self.rows)
        row, start = next(rows, None), 0
        for first, last in spans:
            while row is not None and start <= last:
                stop = start + row.count - 1
                if first <= stop:
                    taken.append(row.part(max(first, start) - start, min(last, stop) - start))
                    if last < stop:
                        break
                row, start = next(rows, None), stop + 1
        return Hostlist(tuple(taken))

    def find(self, name: str) -> tuple[int, ...]:
        """The positions at which ``name`` stands."""
        found, start = [], 0
        for row in self.rows:
            position = row.find(name)
            if position is not None:
                found.append(start + position)
            start += row.count
        return tuple(found)

    def __str__(self) -> str:
        words: list[str] = []
        group: list[_Hosts] = []
        for row in (*self.rows, None):
            if group and (row is None or not _together(group[0], row)):
                numbers = ",".join(_merged(group))
                single = numbers.isdecimal()
                words.append(f"{group[0].prefix}{numbers if single else f'[{numbers}]'}{group[0].suffix}")
                group = []
            if row is not None and row.width:
                group.append(row)
            elif row is not None:
                words.append(row.prefix)
        return ",".join(words)


def _together(a: _Hosts, b: _Hosts) -> bool:
    """Whether both can stand in one pair of brackets, of which ``a`` is the first and shows the width."""
    shows = a.width == 1 or len(str(a.low)) < a.width
    return bool(b.width) and shows and (a.prefix, a.suffix, a.width) == (b.prefix, b.suffix, b.width)


def _merged(group: list[_Hosts]) -> Iterator[str]:
    current = group[0]
    for row in group[1:]:
        if row.low == current.high + 1:
            current = _Hosts(current.prefix, current.low, row.high, current.width, current.suffix)
        else:
            yield current.numbers()
            current = row
    yield current.numbers()


def _rows(text: str) -> Iterator[_Hosts]:
    place = 0
    while place < len(text):
        match = _EXPRESSION.match(text, place)
        if match is None:
            raise HostlistError(
                f"not a hostlist: unbalanced or repeated brackets at character {place + 1} "
                f"({text[place : place + 20]!r}); expected names such as node[0-3] (RFC 29)"
            )
        prefix, numbers, suffix, _ = match.groups()
        if numbers is not None:
            yield from _numbered(prefix, numbers, suffix, match.start(2))
        elif trailing := _TRAILING.fullmatch(prefix):
            name, number = trailing.groups()
            yield _Hosts(name, int(number), int(number), _width(number))
        elif prefix:
            yield _Hosts(prefix)
        place = match.end()


def _numbered(prefix: str, numbers: str, suffix: str, place: int) -> Iterator[_Hosts]:
    width = 0
    for element in numbers.split(","):
        match = _ELEMENT.fullmatch(element)
        low = int(match[1]) if match else 0
        high = int(match[2]) if match and match[2] else low
        if match is None or high < low:
            raise HostlistError(
                f"not a hostlist: {element[:20]!r} at character {place + 1} is not a number or an "
                "ascending range (RFC 29)"
            )
        width = width or _width(match[1])  # RFC 29: the first element's leading zeros go for all
        yield _Hosts(prefix, low, high, width, suffix)
        place += len(element) + 1


def _width(number: str) -> int:
    return len(number) if number.startswith("0") else 1
