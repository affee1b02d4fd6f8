"""Sets of cores (and GPUs) on ranks: what R's ``children`` say, as an algebra of immutable values.

A rank may be shared: two jobs then have different cores of it. A :class:`CoreSet` is a set of (rank, kind, id) that is
kept as rectangles, ids times ranks, so that it costs no more for many ranks or cores alike than for one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import zip_longest
from typing import Final

from attrs import define, field, frozen

from .idset import NO_RANKS, IdSet

__all__ = ["NO_CORES", "CoreBooks", "CoreSet"]

_Row = tuple[str, IdSet, IdSet]


@frozen
class CoreSet:
    """``rows``: each a kind of child ("core", "gpu"), ids of it, and the ranks that have these in the set.

    Made by :meth:`of`; equal sets have equal rows.
    """

    rows: tuple[_Row, ...] = field(default=())

    @classmethod
    def of(cls, rows: Iterable[_Row]) -> CoreSet:
        """The union of these rows, which may overlap."""
        alike: dict[tuple[str, IdSet], IdSet] = {}
        for kind, ids, ranks in rows:
            alike[kind, ids] = alike.get((kind, ids), NO_RANKS) | ranks
        sets = [cls(((kind, ids, ranks),)) for (kind, ids), ranks in alike.items() if ids and ranks]
        while len(sets) > 1:  # by halves: one by one takes long where hardly two are alike
            sets = [a | b for a, b in zip_longest(sets[::2], sets[1::2], fillvalue=NO_CORES)]
        return sets[0] if sets else NO_CORES

    @property
    def ranks(self) -> IdSet:
        """The ranks that anything is on."""
        ranks = NO_RANKS
        for _, _, on in self.rows:
            ranks |= on
        return ranks

    def on(self, ranks: IdSet) -> CoreSet:
        """Those that are on these ranks."""
        return _gathered((kind, ids, left) for kind, ids, on in self.rows if (left := on & ranks))

    def __bool__(self) -> bool:
        return bool(self.rows)

    def __or__(self, other: CoreSet) -> CoreSet:
        return self._with(other, IdSet.__or__) if self.rows and other.rows else other if other.rows else self

    def __and__(self, other: CoreSet) -> CoreSet:
        return self._with(other, IdSet.__and__)

    def __sub__(self, other: CoreSet) -> CoreSet:
        return self._with(other, IdSet.__sub__)

    def _with(self, other: CoreSet, operation: Callable[[IdSet, IdSet], IdSet]) -> CoreSet:
        return _gathered(_combined(self.rows, other.rows, operation))

    def __str__(self) -> str:
        """As in ``sched.resource_summary``: ``rank[0-3]/core[0-1]``."""
        return " ".join(f"rank{_bracketed(ranks)}/{kind}{_bracketed(ids)}" for kind, ids, ranks in self.rows)


def _bracketed(ids: IdSet) -> str:
    return str(ids) if len(ids) == 1 else f"[{ids}]"


@define
class CoreBooks:
    """A set of cores that many small sets are added to and removed from.

    Its rows are not kept as few as they could be, so that a change costs less.
    """

    _rows: list[_Row] = field(factory=list)

    def add(self, cores: CoreSet) -> None:
        self._rows = _combined(self._rows, cores.rows, IdSet.__or__)

    def remove(self, cores: CoreSet) -> None:
        self._rows = _combined(self._rows, cores.rows, IdSet.__sub__)

    def common(self, cores: CoreSet) -> CoreSet:
        """Those of ``cores`` that are in the set."""
        return _gathered(_combined(cores.rows, self._rows, IdSet.__and__))


def _combined(a: Iterable[_Row], b: Iterable[_Row], operation: Callable[[IdSet, IdSet], IdSet]) -> list[_Row]:
    """Do to the ranks of each id what the operation does."""
    rows: list[_Row] = []
    rest = list(b)
    for kind, ids, ranks in a:
        for place, (kind_b, ids_b, ranks_b) in enumerate(rest):
            if kind == kind_b and not ids.isdisjoint(ids_b):
                common = ids & ids_b
                rows.append((kind, common, operation(ranks, ranks_b)))
                ids -= common
                rest[place] = kind_b, ids_b - common, ranks_b
        rows.append((kind, ids, operation(ranks, NO_RANKS)))
    rows.extend([(kind, ids, operation(NO_RANKS, ranks)) for kind, ids, ranks in rest])
    return [row for row in rows if row[1] and row[2]]


def _gathered(rows: Iterable[_Row]) -> CoreSet:
    """The set of these rows, in which no (kind, id) is twice: those of the same ranks become one."""
    ids_of: dict[tuple[str, IdSet], IdSet] = {}
    for kind, ids, ranks in rows:
        ids_of[kind, ranks] = ids_of.get((kind, ranks), NO_RANKS) | ids
    listed = [(kind, ids, ranks) for (kind, ranks), ids in ids_of.items()]
    listed.sort(key=lambda row: (row[0], row[1].min()))
    return CoreSet(tuple(listed))


NO_CORES: Final = CoreSet()
"""The empty set."""
