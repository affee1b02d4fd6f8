"""R, the resource set of a job (RFC 20 version 1): which ranks it has, and what their hosts are called.

Reading R needs the extra ``[cli]``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final, Literal

import msgspec
from attrs import field, frozen

from .hostlist import Hostlist, HostlistError
from .idset import NO_RANKS, IdSet, IdSetError

__all__ = ["ResourceSet", "ResourceSetError", "ranks_of_summary"]

_SUMMARY_WORD: Final = re.compile(r"rank(\[[^\]]*\]|[0-9]+)(/\S*)?")


class ResourceSetError(ValueError):
    """A text is not an R of RFC 20 version 1. The message says where and why."""


class _Entry(msgspec.Struct, gc=False):
    rank: str


class _Execution(msgspec.Struct, gc=False):
    R_lite: list[_Entry]
    nodelist: list[str] | None = None


class _R(msgspec.Struct, gc=False):
    version: Literal[1]
    execution: _Execution


_decode = msgspec.json.Decoder(_R).decode
_idset = lru_cache(1024)(IdSet)  # the same nodes are allocated again and again


@frozen
class ResourceSet:
    """``ranks``: the execution targets. ``nodelist``: R's hostlists, in the order of the ranks, where it has them.

    ``text``: the JSON that it was read from, where it was.
    """

    ranks: IdSet
    nodelist: tuple[str, ...] | None = None
    text: bytes | None = field(default=None, eq=False, repr=False)

    @classmethod
    def parse(cls, text: bytes | msgspec.Raw) -> ResourceSet:
        """Read the JSON of an R. Raises :class:`ResourceSetError`."""
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
            try:
                ranks |= _idset(entry.rank)
            except IdSetError as error:
                place = f"$.execution.R_lite[{number}].rank"
                raise ResourceSetError(f"not an R (RFC 20): {error} - at `{place}`") from None
        if not ranks:
            raise ResourceSetError("not an R (RFC 20): no ranks - at `$.execution.R_lite`")
        nodelist = r.execution.nodelist
        return cls(ranks, None if nodelist is None else tuple(nodelist), text)

    def to_json(self) -> Any:
        """The RFC 20 object: the one that was read, or else the least that says the ranks and the hosts."""
        if self.text is not None:
            return msgspec.json.decode(self.text)
        execution: dict[str, Any] = {"R_lite": [{"rank": str(self.ranks), "children": {"core": "0"}}]}
        if self.nodelist is not None:
            execution["nodelist"] = list(self.nodelist)
        return {"version": 1, "execution": execution}

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
