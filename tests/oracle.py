"""A second formulation of one job's rules, to test the first against: it shares no code with the package.

It is written from the specification's table of events and its list of violations, in other terms: each rank has a
state and a count of references in plain dictionaries, and events are JSON entries whose ranks are text. A verdict is
found by collecting every rule that an event breaks; the first in the order of the codes stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CODES = (
    "AfterInactive",
    "MalformedContext",
    "UnknownHolder",
    "DuplicateHolder",
    "WrongPhase",
    "ReleasedWhileReferenced",
    "FreeWhileActive",
    "GateClosed",
    "NotHeld",
    "CleanWhileHeld",
    "LastRankFreed",
    "ResourcesLost",
)

# What RFC 21 (and the extensions) require of a context: key -> type; "?" where it may be absent.
KEYS: dict[str, dict[str, str]] = {
    "submit": {"userid": "int", "urgency": "int", "flags": "int", "version": "int?"},
    "priority": {"priority": "int"},
    "alloc": {"annotations": "object?", "bypass": "bool?"},
    "prolog-start": {"description": "str"},
    "prolog-finish": {"description": "str", "status": "int"},
    "finish": {"status": "int"},
    "exception": {"type": "str", "severity": "int", "note": "str?"},
    "release": {"ranks": "ranks", "final": "bool", "description": "str?"},
    "epilog-start": {"description": "str", "ranks": "ranks?"},
    "epilog-finish": {"description": "str", "status": "int"},
    "partial-free": {"ranks": "idset"},
}
TYPES: dict[str, tuple[type, ...]] = {"int": (int,), "str": (str,), "bool": (bool,), "object": (dict,)}
EMPTY = {"start", "free", "clean"}  # their contexts

ALL = "all"


def ids(text: str) -> list[int] | None:
    """The ids of an idset; None if it is not one."""
    numbers: list[int] = []
    for part in text.removeprefix("[").removesuffix("]").split(",") if text else []:
        first, dash, last = part.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            return None
        span = range(int(first), int(last or first) + 1)
        if not span or (dash and len(span) < 2) or (numbers and span[0] <= numbers[-1]):
            return None
        numbers += span
    return numbers


class Holder:
    """Who references ranks. ``to_come``: also all ranks of an allocation that may still come."""

    def __init__(self, kind: str, description: str, ranks: set[int], to_come: bool = False) -> None:
        self.kind = kind
        self.description = description
        self.ranks = ranks
        self.to_come = to_come

    def __repr__(self) -> str:
        return f"{self.kind} {self.description!r} on {sorted(self.ranks)}{' and to come' * self.to_come}"


class Oracle:
    """One job. ``verdict`` says which rule an entry breaks, ``happen`` makes it happen, whether it may or not."""

    def __init__(self, last_rank: str) -> None:
        self.last_rank = last_rank
        self.phase = "-"
        self.exec = "idle"
        self.exec_has: set[int] = set()
        self.actions: list[Holder] = []
        self.where: dict[int, str] = {}  # each rank ever allocated -> "held", "released" or "lost"
        self.count: dict[int, int] = {}  # each rank ever allocated -> how many active holders reference it
        self.over = False  # the allocation is

    def copy(self) -> Oracle:
        new = Oracle(self.last_rank)
        new.__dict__.update(self.__dict__)
        new.exec_has, new.where, new.count = set(self.exec_has), dict(self.where), dict(self.count)
        new.actions = [Holder(h.kind, h.description, set(h.ranks), h.to_come) for h in self.actions]
        return new

    # -- what is the case --

    def ranks(self, where: str) -> set[int]:
        return {rank for rank, is_ in self.where.items() if is_ == where}

    def exec_is_holder(self) -> bool:
        return self.exec in ("running", "finished")

    def active(self) -> int:
        return len(self.actions) + self.exec_is_holder()

    def gate_open(self) -> bool:
        return self.phase == "CLEANUP" and self.exec not in ("requested", "running")

    def referenced(self) -> set[int]:
        return {rank for rank in self.ranks("held") if self.count[rank]}

    def releasable(self) -> set[int]:
        return self.ranks("held") - self.referenced() if self.gate_open() else set()

    def named(self, kind: str, description: object) -> list[Holder]:
        return [h for h in self.actions if h.kind == kind and h.description == description]

    def giver(self, description: object, ranks: str) -> Holder | None:
        """The epilog of that name; where a violation made them several, the first that has the ranks."""
        known = self.named("epilog", description)
        if ranks == ALL and not self.where:  # while nothing is allocated, who waits for all of it has "all"
            known.sort(key=lambda holder: not holder.to_come)
        return next((h for h in known if not self.lacks(h, ranks)), known[0] if known else None)

    def lacks(self, holder: Holder, ranks: str) -> bool:
        return ranks != ALL and not set(ids(ranks) or ()) <= holder.ranks

    # -- may it happen? --

    def verdict(self, entry: Mapping[str, Any], r: list[int]) -> str | None:
        """The code of the violation that the entry is. ``r``: the ranks of R, where it is an alloc."""
        broken = self.broken(entry["name"], entry.get("context") or {}, r)
        return min(broken, key=CODES.index) if broken else None

    def broken(self, name: str, context: Mapping[str, Any], r: list[int]) -> set[str]:
        broken = set()
        if self.phase == "INACTIVE":
            broken.add("AfterInactive")
        if self.phase == "-" and name != "submit":
            broken.add("WrongPhase")
        if is_malformed(name, context) or (name == "alloc" and not r):
            return broken | {"MalformedContext"}
        rules = getattr(self, "broken_by_" + name.replace("-", "_").replace(".", "_"), None)
        return broken | {code for code, is_ in rules(context).items() if is_} if rules else broken

    def broken_by_submit(self, context: Mapping[str, Any]) -> dict[str, bool]:
        return {"WrongPhase": self.phase != "-"}

    def broken_by_alloc(self, context: Mapping[str, Any]) -> dict[str, bool]:
        return {"WrongPhase": bool(self.where)}

    def broken_by_prolog_start(self, context: Mapping[str, Any]) -> dict[str, bool]:
        return {
            "DuplicateHolder": bool(self.named("prolog", context["description"])),
            "WrongPhase": self.exec not in ("idle", "requested"),
        }

    def broken_by_prolog_finish(self, context: Mapping[str, Any]) -> dict[str, bool]:
        return {"UnknownHolder": not self.named("prolog", context["description"])}

    def broken_by_start(self, context: Mapping[str, Any]) -> dict[str, bool]:
        return {"WrongPhase": self.exec != "requested" or any(h.kind == "prolog" for h in self.actions)}

    def broken_by_finish(self, context: Mapping[str, Any]) -> dict[str, bool]:
        # After a final release that came too early, and was reported, the finish itself is in its place.
        in_place = self.exec in ("requested", "running") or (self.exec == "done" and self.phase == "RUN")
        return {"WrongPhase": not in_place}

    def broken_by_exception(self, context: Mapping[str, Any]) -> dict[str, bool]:
        return {"ResourcesLost": self.loses(context) and bool(self.referenced())}

    def broken_by_release(self, context: Mapping[str, Any]) -> dict[str, bool]:
        ranks, final, description = context["ranks"], context["final"], context.get("description")
        if description is None:
            too_early = self.phase != "CLEANUP" or self.exec == "running"
            return {
                "WrongPhase": self.exec in ("idle", "done") or (final and too_early),
                "NotHeld": ranks != ALL and not set(ids(ranks) or ()) <= self.exec_has,
            }
        holder = self.giver(description, ranks)
        return {
            "UnknownHolder": holder is None,
            "WrongPhase": self.phase != "CLEANUP",
            "NotHeld": holder is not None and self.lacks(holder, ranks),
        }

    def broken_by_epilog_start(self, context: Mapping[str, Any]) -> dict[str, bool]:
        ranks = context.get("ranks", ALL)
        return {
            "DuplicateHolder": bool(self.named("epilog", context["description"])),
            "WrongPhase": self.phase != "CLEANUP",
            "NotHeld": ranks != ALL and not set(ids(ranks) or ()) <= self.ranks("held"),
        }

    def broken_by_epilog_finish(self, context: Mapping[str, Any]) -> dict[str, bool]:
        return {"UnknownHolder": not self.named("epilog", context["description"])}

    def broken_by_partial_free(self, context: Mapping[str, Any]) -> dict[str, bool]:
        ranks, held = set(ids(context["ranks"]) or ()), self.ranks("held")
        return {
            "WrongPhase": not self.active(),
            "ReleasedWhileReferenced": any(self.count[rank] for rank in ranks & held),
            "GateClosed": not self.gate_open(),
            "NotHeld": not ranks <= held,
            "LastRankFreed": self.last_rank == "keep" and held <= ranks,
        }

    def broken_by_free(self, context: Mapping[str, Any]) -> dict[str, bool]:
        return {
            "WrongPhase": not self.where or self.over,
            "ReleasedWhileReferenced": bool(self.referenced()),
            "FreeWhileActive": bool(self.active()),
            "GateClosed": not self.gate_open(),
        }

    def broken_by_clean(self, context: Mapping[str, Any]) -> dict[str, bool]:
        waiting = self.active() or self.exec == "requested" or (self.where and not self.over)
        return {"WrongPhase": self.phase != "CLEANUP", "CleanWhileHeld": bool(waiting)}

    # -- what does it do? --

    def happen(self, entry: Mapping[str, Any], r: list[int]) -> None:
        """Make the entry happen, whether it may or not; ``verdict`` has said it. Not for malformed ones."""
        if self.phase == "INACTIVE":
            return
        name = entry["name"]
        does = getattr(self, "on_" + name.replace("-", "_").replace(".", "_"), None)
        if name == "alloc":
            self.allocate(r)
        elif does:
            does(entry.get("context") or {})
        # Asked to start: in RUN, allocated, no prolog active.
        if (
            self.phase == "RUN"
            and self.exec == "idle"
            and self.where
            and not any(h.kind == "prolog" for h in self.actions)
        ):
            self.exec = "requested"
            self.exec_has = self.ranks("held")

    def on_submit(self, context: Mapping[str, Any]) -> None:
        if self.phase == "-":
            self.phase = "NEW"

    def move(self, source: str, target: str) -> None:
        if self.phase == source:
            self.phase = target

    def on_validate(self, context: Mapping[str, Any]) -> None:
        self.move("NEW", "DEPEND")

    def on_invalidate(self, context: Mapping[str, Any]) -> None:
        self.move("NEW", "INACTIVE")

    def on_depend(self, context: Mapping[str, Any]) -> None:
        self.move("DEPEND", "PRIORITY")

    def on_priority(self, context: Mapping[str, Any]) -> None:
        self.move("PRIORITY", "SCHED")

    def on_urgency(self, context: Mapping[str, Any]) -> None:
        self.move("SCHED", "PRIORITY")

    on_jobspec_update = on_flux_restart = on_urgency

    def allocate(self, r: list[int]) -> None:
        if self.where:
            return
        self.where = dict.fromkeys(r, "held")
        self.count = dict.fromkeys(r, 0)
        for holder in self.actions:
            if holder.to_come:
                self.hold(holder, set(r))
        if self.exec_is_holder():  # a start that came before the alloc, and was reported
            self.exec_has = set(r)
            self.add(self.exec_has, 1)
        if self.phase != "CLEANUP":
            self.phase = "RUN"

    def add(self, ranks: set[int], much: int) -> None:
        for rank in ranks:
            self.count[rank] += much

    def hold(self, holder: Holder, ranks: set[int]) -> None:
        holder.to_come = False
        holder.ranks = set(ranks)
        self.add(holder.ranks, 1)

    def drop(self, holder: Holder, ranks: set[int]) -> None:
        self.add(holder.ranks & ranks, -1)
        holder.ranks = holder.ranks - ranks

    def begin(self, kind: str, description: str, ranks: str) -> None:
        holder = Holder(kind, description, set(), to_come=ranks == ALL and not self.where)
        self.actions.append(holder)
        if not holder.to_come:
            held = self.ranks("held")
            self.hold(holder, held if ranks == ALL else held & set(ids(ranks) or ()))

    def end(self, kind: str, description: str) -> None:
        for holder in self.named(kind, description)[:1]:
            self.drop(holder, holder.ranks)
            self.actions.remove(holder)

    def on_prolog_start(self, context: Mapping[str, Any]) -> None:
        self.begin("prolog", context["description"], ALL)
        if self.phase == "RUN" and self.exec == "requested":
            self.exec, self.exec_has = "idle", set()

    def on_prolog_finish(self, context: Mapping[str, Any]) -> None:
        self.end("prolog", context["description"])

    def on_start(self, context: Mapping[str, Any]) -> None:
        if self.exec == "idle":
            self.exec_has = self.ranks("held")
        if self.exec in ("idle", "requested"):
            self.exec = "running"
            self.add(self.exec_has, 1)

    def on_finish(self, context: Mapping[str, Any]) -> None:
        self.move("RUN", "CLEANUP")
        if self.exec == "requested":  # the shells never started
            self.add(self.exec_has, 1)
        if self.exec in ("requested", "running"):
            self.exec = "finished"

    def loses(self, context: Mapping[str, Any]) -> bool:
        fatal_restart = context["type"] == "scheduler-restart" and context["severity"] == 0
        return fatal_restart and bool(self.where) and not self.over

    def on_exception(self, context: Mapping[str, Any]) -> None:
        if context["severity"] == 0:
            if self.loses(context):
                self.take(self.ranks("held"), "lost")
                self.over = True
            self.phase = "CLEANUP"

    def on_release(self, context: Mapping[str, Any]) -> None:
        ranks, description = context["ranks"], context.get("description")
        if description is not None:
            holder = self.giver(description, ranks)
            if holder is not None:
                holder.to_come = holder.to_come and ranks != ALL
                self.drop(holder, holder.ranks if ranks == ALL else set(ids(ranks) or ()))
        elif self.exec not in ("idle", "done"):
            every = ranks == ALL or context["final"]
            dropped = set(self.exec_has) if every else self.exec_has & set(ids(ranks) or ())
            if self.exec_is_holder():
                self.add(dropped, -1)
            self.exec_has = self.exec_has - dropped
            if context["final"]:
                self.exec = "done"

    def on_epilog_start(self, context: Mapping[str, Any]) -> None:
        self.begin("epilog", context["description"], context.get("ranks", ALL))

    def on_epilog_finish(self, context: Mapping[str, Any]) -> None:
        self.end("epilog", context["description"])

    def take(self, ranks: set[int], to: str) -> None:
        """The ranks are gone; references to them go with them."""
        for rank in ranks:
            self.where[rank] = to
        for holder in self.actions:
            self.drop(holder, ranks)
        if self.exec_is_holder():
            self.add(self.exec_has & ranks, -1)
        self.exec_has = self.exec_has - ranks

    def on_partial_free(self, context: Mapping[str, Any]) -> None:
        self.take(set(ids(context["ranks"]) or ()) & self.ranks("held"), "released")

    def on_free(self, context: Mapping[str, Any]) -> None:
        if self.where and not self.over:
            self.take(self.ranks("held"), "released")
            self.over = True

    def on_clean(self, context: Mapping[str, Any]) -> None:
        self.phase = "INACTIVE"

    # -- the job manager --

    def decision(self, queued: list[Mapping[str, Any]]) -> tuple[str, set[int]] | None:
        """The name of the event that the job manager posts next, and the ranks of a partial-free."""
        if self.phase != "CLEANUP" or any(entry["name"] == "epilog-start" for entry in queued):
            return None
        for name in ("free", "clean"):
            if self.verdict({"name": name}, []) is None:
                return name, set()
        ranks = self.releasable()
        if self.last_rank == "keep" and ranks == self.ranks("held"):
            ranks = set(sorted(ranks)[1:])
        return ("partial-free", ranks) if ranks else None


def is_malformed(name: str, context: Mapping[str, Any]) -> bool:
    """Whether the context is not what RFC 21 says."""
    if name in EMPTY and context:
        return True
    for key, kind in KEYS.get(name, {}).items():
        if key not in context:
            if not kind.endswith("?"):
                return True
            continue
        value, kind = context[key], kind.removesuffix("?")
        if kind in TYPES and type(value) not in TYPES[kind]:
            return True
        if kind in ("ranks", "idset") and not (
            isinstance(value, str) and (ids(value) is not None or (value == ALL and kind == "ranks"))
        ):
            return True
    if name == "submit":
        return bool(context.get("version", 1) != 1)
    if name == "exception":
        return not 0 <= context["severity"] <= 7
    if name == "release":
        return bool(context["final"]) and "description" in context
    return name == "partial-free" and not context["ranks"]
