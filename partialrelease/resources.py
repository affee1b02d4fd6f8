"""R, the resource set of a job (RFC 20 version 1): which ranks it has, and what their hosts are called.

Reading R needs the extra ``[cli]``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final, Literal

import msgspec
from attrs import field, frozen

from .cores import CoreSet
from .hostlist import Hostlist, HostlistError
from .idset import NO_RANKS, IdSet, IdSetError

__all__ = ["ResourceSet", "ResourceSetError", "ranks_of_summary"]

_SUMMARY_WORD: Final = re.compile(r"rank(\[[^\]]*\]|[0-9]+)(/\S*)?")


class ResourceSetError(ValueError):
    """A text is not an R of RFC 20 version 1, or an R has not what was asked of it. The message says where and why."""


class _Entry(msgspec.Struct, gc=False):
    rank: str


class _Execution(msgspec.Struct, gc=False):
    R_lite: list[_Entry]
    nodelist: list[str] | None = None


class _R(msgspec.Struct, gc=False):
    version: Literal[1]
    execution: _Execution


class _FullEntry(_Entry, gc=False):
    children: dict[str, str] = {}


class _FullExecution(msgspec.Struct, gc=False):
    R_lite: list[_FullEntry]
    starttime: float = 0.0
    properties: dict[str, str] = {}


class _FullR(msgspec.Struct, gc=False):
    """What most readers of R do not need."""

    execution: _FullExecution


_decode = msgspec.json.Decoder(_R).decode
_decode_full = msgspec.json.Decoder(_FullR).decode
_idset = lru_cache(1024)(IdSet)  # the same nodes are allocated again and again
_WHOLE_RANK: Final = {"rank": "0"}  # what is on a rank of which R names no children: the rank, which cannot be shared


@frozen
class ResourceSet:
    """``ranks``: the execution targets. ``nodelist``: R's hostlists, in the order of the ranks, where it has them.

    ``text``: the JSON that it was read from, where it was.
    """

    ranks: IdSet
    nodelist: tuple[str, ...] | None = None
    text: bytes | None = field(default=None, eq=False, repr=False)

    @classmethod
    def parse(cls, text: bytes | msgspec.Raw, *, may_be_empty: bool = False) -> ResourceSet:
        """Read the JSON of an R. ``may_be_empty``: of a fragment, which may have no ranks.

        Raises :class:`ResourceSetError`.
        """
        text = bytes(text)
        try:
            if not text.isascii():
                text.decode()
            r = _decode(text)
        except UnicodeDecodeError:
            raise ResourceSetError("not an R (RFC 20): Invalid UTF-8") from None
        except (msgspec.DecodeError, RecursionError) as error:
            raise ResourceSetError(f"not an R (RFC 20): {error}") from None
        ranks = NO_RANKS
        for number, entry in enumerate(r.execution.R_lite):
            ranks |= _idset_at(entry.rank, f"R_lite[{number}].rank")
        if not ranks and not may_be_empty:
            raise ResourceSetError("not an R (RFC 20): no ranks - at `$.execution.R_lite`")
        nodelist = r.execution.nodelist
        return cls(ranks, None if nodelist is None else tuple(nodelist), text)

    def to_json(self) -> Any:
        """The RFC 20 object: the one that was read, or else the least that says the ranks and the hosts.

        Raises :class:`ResourceSetError` where a value that nobody needs to know the ranks is none (a number as 1e999).
        """
        if self.text is not None:
            try:
                return msgspec.json.decode(self.text)
            except msgspec.DecodeError as error:
                raise ResourceSetError(f"not an R (RFC 20): {error}") from None
        execution: dict[str, Any] = {"R_lite": [{"rank": str(self.ranks), "children": {"core": "0"}}]}
        if self.nodelist is not None:
            execution["nodelist"] = list(self.nodelist)
        return {"version": 1, "execution": execution}

    def fragment(self, ranks: IdSet) -> ResourceSet:
        """This R cut down to ``ranks``: what goes back to the scheduler with a ``sched.free`` (RFC 27).

        Of RFC 20's keys, ``R_lite`` and ``nodelist`` keep what is of these ranks, and so do the ``properties``, where
        one that no rank is left of goes. ``scheduling`` goes: nobody but its scheduler can cut it, and RFC 27 lets it
        be omitted. ``nslots`` counts the slots of an allocation: it goes unless the fragment is all of it.
        What RFC 20 is silent about stays as it is: the times (Flux leaves them unset in a fragment), and unknown keys.
        Raises :class:`ResourceSetError` if R has not all of the ranks, or is not good.
        """
        if not ranks <= self.ranks:
            missing = ranks - self.ranks
            raise ResourceSetError(f"no fragment of R (ranks {self.ranks}) can have {missing}: not its ranks")
        r: dict[str, Any] = self.to_json()
        r.pop("scheduling", None)
        execution = r["execution"]
        if ranks != self.ranks:
            execution.pop("nslots", None)
        entries = ((entry, _idset(entry["rank"]) & ranks) for entry in execution["R_lite"])
        execution["R_lite"] = [{**entry, "rank": str(common)} for entry, common in entries if common]
        hosts = self.hosts_of(ranks)
        if hosts is not None:
            execution["nodelist"] = [str(hosts)] if ranks else []
        if "properties" in execution:
            properties = {name: on & ranks for name, on in self.properties().items()}
            execution["properties"] = {name: str(on) for name, on in properties.items() if on}
            if not execution["properties"]:
                del execution["properties"]
        nodelist = execution.get("nodelist")
        return ResourceSet(ranks, None if nodelist is None else tuple(nodelist), msgspec.json.encode(r))

    def properties(self) -> dict[str, IdSet]:
        """The ranks that have each property (RFC 20). Raises :class:`ResourceSetError`."""
        found = self._full().properties
        return {name: _idset_at(text, f"properties[{name!r}]") for name, text in found.items()}

    def cores(self) -> CoreSet:
        """The ``children`` of the ranks; of a rank that has none, the rank as a whole.

        Raises :class:`ResourceSetError`.
        """
        rows = []
        for number, entry in enumerate(self._full().R_lite):
            ranks = _idset_at(entry.rank, f"R_lite[{number}].rank")
            children = {kind: ids for kind, ids in entry.children.items() if ids} or _WHOLE_RANK
            for kind, ids in children.items():
                rows.append((kind, _idset_at(ids, f"R_lite[{number}].children.{kind}"), ranks))
        return CoreSet.of(rows)

    def starttime(self) -> float | None:
        """When R begins to be valid, in seconds since the epoch; ``None`` where it does not say.

        Raises :class:`ResourceSetError`.
        """
        return self._full().starttime or None

    def _full(self) -> _FullExecution:
        text = msgspec.json.encode(self.to_json()) if self.text is None else self.text
        try:
            return _decode_full(text).execution
        except msgspec.DecodeError as error:
            raise ResourceSetError(f"not an R (RFC 20): {error}") from None

    def hosts(self) -> Hostlist | None:
        """The hosts' names, in the order of the ranks; ``None`` where R has none.

        Raises :class:`ResourceSetError` when they are no hostlists, or not as many as the ranks. (They are looked at
        here and not before: most logs are checked without a need for them.)
        """
        if not self.nodelist:
            return None
        try:
            hosts = Hostlist.parse(",".join(self.nodelist))
        except HostlistError as error:
            raise ResourceSetError(f"not an R (RFC 20): {error} - at `$.execution.nodelist`") from None
        if hosts.count != len(self.ranks):
            problem = f"{hosts.count} hosts for {len(self.ranks)} ranks"
            raise ResourceSetError(f"not an R (RFC 20): {problem} - at `$.execution.nodelist`")
        return hosts

    def hosts_of(self, ranks: IdSet) -> Hostlist | None:
        """The names of the hosts of these ranks (those of them that are R's). Raises as :meth:`hosts` does."""
        hosts = self.hosts()
        spans = ((self.ranks.index(a), self.ranks.index(b)) for a, b in (ranks & self.ranks).runs())
        return hosts and hosts.take(spans)

    def ranks_of(self, host: str) -> IdSet:
        """The ranks on that host: several, where the nodelist repeats it. Raises as :meth:`hosts` does."""
        hosts = self.hosts()
        return IdSet(map(self.ranks.nth, hosts.find(host))) if hosts else NO_RANKS


def _idset_at(text: str, place: str) -> IdSet:
    try:
        return _idset(text)
    except IdSetError as error:
        raise ResourceSetError(f"not an R (RFC 20): {error} - at `$.execution.{place}`") from None


def ranks_of_summary(annotations: object) -> IdSet | None:
    """The ranks in the ``sched.resource_summary`` annotation of an ``alloc``, such as ``rank[0-3]/core[0-1]``.

    ``None`` where there is none or it is in another form.
    """
    summary = annotations.get("sched") if isinstance(annotations, dict) else None
    text = summary.get("resource_summary") if isinstance(summary, dict) else None
    if not isinstance(text, str):
        return None
    ranks = NO_RANKS
    for word in text.split():
        match = _SUMMARY_WORD.fullmatch(word)
        if match is None:
            return None
        try:
            ranks |= IdSet(match[1])
        except IdSetError:
            return None
    return ranks or None
