"""Sets of ids (ranks) as an algebra of immutable values, with the text form of RFC 22.

An :class:`IdSet` wraps a Roaring bitmap, so that the cost of an operation follows the number of runs
and containers of the set and not the number of its ids: ``IdSet("0-4000000000")`` is small.
Nothing here loops over single ids, except iteration itself.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator
from json import JSONDecoder
from typing import Any, Final, NoReturn

from pyroaring import BitMap, FrozenBitMap

__all__ = ["ALL_RANKS", "MAX_ID", "NO_RANKS", "IdSet", "IdSetError"]

MAX_ID: Final = 4294967294
"""The largest id. RFC 22 sets no limit; 2^32 - 1 is Flux's "no id"."""

_NUMBER = "(0|[1-9][0-9]{0,9})"
_ONE_RANGE = re.compile(f"{_NUMBER}-{_NUMBER}").fullmatch
_ONE_ID = re.compile(_NUMBER).fullmatch
_OTHER = re.compile("[^0-9,-]").search
_decode = JSONDecoder().raw_decode
_CHUNK = 1 << 16  # characters parsed at a time, so that a long text costs little beside its result


class IdSetError(ValueError):
    """A text is not an RFC 22 idset, or a number is not an id. The message names the place."""


class IdSet:
    """An immutable, hashable set of ids from 0 to 4294967294.

    ``IdSet("0-3,7")`` parses the text form (RFC 22: ascending, no repeats, no leading zeroes, no
    white space, optional square brackets around the whole); ``IdSet([0, 1, 2])`` takes any iterable
    of ints. ``str()`` gives the canonical text, ``""`` for the empty set.

    Raises :class:`IdSetError` (a ``ValueError``) when the text or an id is not valid.
    """

    __slots__ = ("_bits",)
    _bits: FrozenBitMap

    def __init__(self, ids: str | Iterable[int] = ()) -> None:
        if isinstance(ids, str):
            # The most common texts, one range and one id, have short ways of their own.
            one = _ONE_RANGE(ids)
            if one is not None and (low := int(one[1])) < (high := int(one[2])) <= MAX_ID:
                _set_bits(self, FrozenBitMap(range(low, high + 1)))
            elif _ONE_ID(ids) and (low := int(ids)) <= MAX_ID:
                _set_bits(self, FrozenBitMap((low,)))
            else:
                _set_bits(self, _parse(ids))
        elif isinstance(ids, IdSet):
            _set_bits(self, ids._bits)
        else:
            _set_bits(self, _collect(ids))

    # -- algebra: the operand that is also the result is returned as it is, which costs nothing --

    def __or__(self, other: IdSet) -> IdSet:
        if not isinstance(other, IdSet):
            return NotImplemented
        if self is other or not other._bits:
            return self
        return _wrap(self._bits | other._bits) if self._bits else other

    def __and__(self, other: IdSet) -> IdSet:
        if not isinstance(other, IdSet):
            return NotImplemented
        if self is other or self._bits <= other._bits:
            return self
        return other if other._bits <= self._bits else _wrap(self._bits & other._bits)

    def __sub__(self, other: IdSet) -> IdSet:
        if not isinstance(other, IdSet):
            return NotImplemented
        if self is other:
            return NO_RANKS
        return _wrap(self._bits - other._bits) if self._bits and other._bits else self

    def __xor__(self, other: IdSet) -> IdSet:
        if not isinstance(other, IdSet):
            return NotImplemented
        return _wrap(self._bits ^ other._bits)

    def isdisjoint(self, other: IdSet) -> bool:
        """Whether no id is in both sets."""
        return self._bits.isdisjoint(other._bits)

    # -- comparison: <= is "subset of", as in frozenset --

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IdSet):
            return NotImplemented
        return self is other or self._bits == other._bits

    def __le__(self, other: IdSet) -> bool:
        if not isinstance(other, IdSet):
            return NotImplemented
        return self._bits <= other._bits

    def __lt__(self, other: IdSet) -> bool:
        if not isinstance(other, IdSet):
            return NotImplemented
        return self._bits < other._bits

    def __ge__(self, other: IdSet) -> bool:
        if not isinstance(other, IdSet):
            return NotImplemented
        return other._bits <= self._bits

    def __gt__(self, other: IdSet) -> bool:
        if not isinstance(other, IdSet):
            return NotImplemented
        return other._bits < self._bits

    def __hash__(self) -> int:
        # Not the bitmap's own hash: that visits every id.
        bits = self._bits
        if MAX_ID in bits:
            return MAX_ID  # ALL_RANKS, or little less: of so many containers even the length takes long
        return hash((len(bits), bits.min(), bits.max())) if bits else 0

    # -- contents --

    def __bool__(self) -> bool:
        return bool(self._bits)

    def __len__(self) -> int:
        return len(self._bits)

    def __contains__(self, id_: object) -> bool:
        return isinstance(id_, int) and 0 <= id_ <= MAX_ID and id_ in self._bits

    def __iter__(self) -> Iterator[int]:
        return iter(self._bits)

    def min(self) -> int:
        """The smallest id. Raises ``ValueError`` on the empty set."""
        return self._bits.min()

    def max(self) -> int:
        """The largest id. Raises ``ValueError`` on the empty set."""
        return self._bits.max()

    def index(self, id_: int) -> int:
        """How many ids of the set are smaller than ``id_`` (its position, where it is in the set)."""
        return self._bits.rank(id_) - (id_ in self._bits)

    def nth(self, position: int) -> int:
        """The id at ``position`` in ascending order, from 0: "the job's n-th rank" as a broker rank.

        Raises ``IndexError`` when there are not that many.
        """
        if not 0 <= position < len(self._bits):
            raise IndexError(f"no id at position {position} of {self!r}, which has {len(self)}")
        return self._bits[position]

    def runs(self) -> Iterator[tuple[int, int]]:
        """The maximal runs of consecutive ids, ascending, each as (first, last)."""
        bits = self._bits
        if not bits:
            return iter(())
        if bits.max() - bits.min() + 1 == len(bits):
            return iter(((bits.min(), bits.max()),))
        firsts = bits - bits.shift(1)
        lasts = bits - bits.shift(-1)
        return zip(firsts.to_array(), lasts.to_array(), strict=True)

    # -- text --

    def __str__(self) -> str:
        bits = self._bits
        if not bits:
            return ""
        low, high = bits.min(), bits.max()
        if high - low < len(bits):  # one range, the most common
            return f"{low}-{high}" if low != high else f"{low}"
        if bits.shift(1).isdisjoint(bits):  # no two neighbours: in bulk
            return ",".join(map(str, bits.to_array()))
        return ",".join(f"{a}-{b}" if a != b else f"{a}" for a, b in self.runs())

    def __repr__(self) -> str:
        return f"IdSet({str(self)!r})"

    # -- immutability, copies, pickles --

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"IdSet is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"IdSet is immutable: cannot delete {name!r}")

    def __copy__(self) -> IdSet:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> IdSet:
        return self

    def __reduce__(self) -> tuple[type[IdSet], tuple[str]]:
        return IdSet, (str(self),)


_new = object.__new__
_set_bits = IdSet.__dict__["_bits"].__set__  # the way past __setattr__


def _wrap(bits: FrozenBitMap) -> IdSet:
    result = _new(IdSet)
    _set_bits(result, bits)
    return result


def _collect(ids: Iterable[int]) -> FrozenBitMap:
    try:
        # By way of an array, since a bitmap takes None for nothing and cuts floats.
        bits = FrozenBitMap(ids if isinstance(ids, range) else array("I", ids))
    except (OverflowError, TypeError) as error:
        raise IdSetError(f"ids are integers from 0 to {MAX_ID}: {error}") from None
    if bits and bits.max() > MAX_ID:
        raise IdSetError(f"ids are integers from 0 to {MAX_ID}: not {bits.max()}")
    return bits


def _parse(text: str) -> FrozenBitMap:
    start, end = 0, len(text)
    if text.startswith("[") and text.endswith("]"):
        start, end = 1, end - 1
    if start == end:
        return FrozenBitMap()
    bits = BitMap()
    last = -1  # the largest id so far
    while start <= end:
        comma = text.find(",", start + _CHUNK)
        stop = end if comma < 0 else comma
        part = text[start:stop]
        add = _add_ranges if "-" in part else _add_singles
        try:
            last = add(bits, part, last)
        except (ValueError, OverflowError):
            _fail(text, start, last)
        start = stop + 1
    bits.run_optimize()
    return FrozenBitMap(bits)


def _add_singles(bits: BitMap, part: str, last: int) -> int:
    """Add "0,2,4" in bulk; return the last id. Raises ``ValueError`` where it is not an idset."""
    if not part.replace(",", "").isdecimal():
        raise ValueError
    listed: array[int] = array("Q", _decode(f"[{part}]")[0])  # JSON writes a number as RFC 22 does
    if listed[0] <= last or listed[-1] > MAX_ID:
        raise ValueError
    ids = array("I", listed)
    new = BitMap(ids)
    if new.to_array() != ids:
        raise ValueError
    bits |= new
    return listed[-1]


def _add_ranges(bits: BitMap, part: str, last: int) -> int:
    """Add "0-3,7"; return the last id. Raises ``ValueError`` where it is not an idset."""
    if _OTHER(part):
        raise ValueError
    singles = []
    numbers, _ = _decode("[[" + part.replace(",", "],[").replace("-", ",") + "]]")
    for low, *rest in numbers:
        if low <= last:
            raise ValueError
        last = low
        if rest:
            (last,) = rest
            if last <= low or last > MAX_ID:
                raise ValueError
            bits.add_range(low, last + 1)
        else:
            singles.append(low)
    if last > MAX_ID:
        raise ValueError
    bits.update(singles)
    return last


def _fail(text: str, start: int, last: int) -> NoReturn:
    """Find the first place at or after ``start`` that is wrong, and say what is wrong with it."""
    end = len(text) - 1 if text.startswith("[") and text.endswith("]") else len(text)
    while True:
        stop = text.find(",", start)
        element = text[start : stop if stop >= 0 else end]
        problem = _problem(element, last)
        if problem or stop < 0:
            break
        last = int(element.rpartition("-")[2])
        start = stop + 1
    shown = element if len(element) <= 24 else f"{element[:20]}..."
    raise IdSetError(
        f"not an idset: {problem} at character {start + 1} ({shown!r}); "
        'expected ascending ids and ranges such as "0-3,7" (RFC 22)'
    ) from None


def _problem(element: str, last: int) -> str | None:
    if not element:
        return "an empty element"
    if odd := re.search("[^0-9-]", element):
        return f"an unexpected {odd[0]!r}"
    numbers = element.split("-")
    if len(numbers) > 2 or "" in numbers:
        return "not a number or a range"
    if any(len(number) > 1 and number[0] == "0" for number in numbers):
        return "a leading zero"
    if any(len(number) > 10 or int(number) > MAX_ID for number in numbers):
        return f"an id above {MAX_ID}"
    low, high = int(numbers[0]), int(numbers[-1])
    if len(numbers) == 2 and high <= low:
        return "a range that does not ascend"
    if low <= last:
        return f"an id that is not above {last}"
    return None


NO_RANKS: Final = IdSet()
"""The empty set."""

ALL_RANKS: Final = IdSet(f"0-{MAX_ID}")
"""Every rank there could be: what "all" means while an allocation is still to come, or not known."""


def in_words(ranks: IdSet) -> str:
    """``rank 3``, ``ranks 0-3,7``, ``all ranks``: for messages, where a long set is cut short."""
    if ranks == ALL_RANKS:
        return "all ranks"
    text = str(ranks)
    if len(text) > 64:
        text = f"{text[:60].rpartition(',')[0]},... ({len(ranks)} in all)"
    return f"rank {text}" if len(ranks) == 1 else f"ranks {text}"
