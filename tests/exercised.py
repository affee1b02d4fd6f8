"""What the stateful tests have exercised: how often each event was tried in each phase, and what came of it.

What can come of it is not listed by hand: it is what a complete walk of all states of a small job shows.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import chain, combinations

from partialrelease import (
    ALL_RANKS,
    NO_RANKS,
    Alloc,
    Code,
    EpilogFinish,
    EpilogStart,
    Event,
    IdSet,
    Job,
    LastRank,
    Malformed,
    PartialFree,
    Phase,
    PrologFinish,
    PrologStart,
    Release,
    effect,
    guard,
)
from partialrelease.strategies import probes

LEGAL = "legal"
Outcome = tuple[str, str, str]  # the event's name, the phase, and "legal" or the violation's code

EXERCISED: Counter[Outcome] = Counter()


def alphabet() -> list[Event]:
    """All events that matter to a job of two ranks, a prolog and an epilog, also those that are never legal."""
    sets = [IdSet(part) for part in chain.from_iterable(combinations((0, 1, 7), n) for n in range(3))]
    plain = [e for e in probes(Job()) if not isinstance(e, PrologStart | PrologFinish | Release | PartialFree)]
    events = [e for e in plain if not isinstance(e, Alloc | EpilogStart | EpilogFinish)]
    for part in [*sets, ALL_RANKS]:
        events += [Release(part, final) for final in (False, True)]
        events += [Release(part, False, name) for name in ("a", "b")]
        events += [EpilogStart("a", part), PartialFree(part), Alloc(part)]
    events += [Release(NO_RANKS, True, "a"), EpilogStart("a"), EpilogFinish("a"), EpilogFinish("b")]
    events += [PrologStart("p"), PrologFinish("p"), PrologFinish("q")]
    return [e for e in events if not (isinstance(e, Alloc) and 7 in e.ranks)]  # no rank 7: it is the foreign one


@cache
def possible() -> Counter[Outcome]:
    """What can come of each event in each phase, and in how many states of the complete walk it does."""
    events = alphabet()
    outcomes: Counter[Outcome] = Counter()
    for last_rank in (LastRank.KEEP, LastRank.DEFER):  # to one job, the third is as the second
        todo = [Job(last_rank)]
        seen = set(todo)
        while todo:
            job = todo.pop()
            here: set[Outcome] = set()
            for event in events:
                violation = guard(job, event)
                here.add((event.name, job.phase.value, violation.code.value if violation else LEGAL))
                if violation is None and (after := effect(job, event)) not in seen:
                    seen.add(after)
                    todo.append(after)
            outcomes.update(here)
    return outcomes


def names() -> list[str]:
    return list(dict.fromkeys(event.name for event in alphabet() if not isinstance(event, Malformed)))


def missing() -> list[Outcome]:
    """What can happen and was never exercised."""
    return sorted(possible().keys() - EXERCISED.keys())


def unforeseen() -> list[Outcome]:
    """What was exercised although the complete walk of the small job says that it cannot happen."""
    return sorted(EXERCISED.keys() - possible().keys())


def summary() -> str:
    done = EXERCISED.keys() & possible().keys()
    pairs = {(name, phase) for name, phase, _ in possible()}
    codes = {what for _, _, what in EXERCISED} - {LEGAL}
    return (
        f"{sum(EXERCISED.values())} events tried; {len({name for name, _, _ in done})} of "
        f"{len(names())} events, {len({(name, phase) for name, phase, _ in done})} of {len(pairs)} pairs (event, "
        f"phase), {len(codes)} of {len(Code)} codes, {len(done)} of {len(possible())} outcomes"
    )


def shown(phase: str) -> str:
    return "unborn" if phase == Phase.UNBORN.value else phase


def table() -> str:
    """How often: legal / refused, of each event in each phase; then each code; then what is never legal, and why."""
    phases = [phase.value for phase in Phase]
    lines = [f"{'legal / refused':24}" + "".join(f"{shown(phase):>15}" for phase in phases)]
    for name in names():
        cells = []
        for phase in phases:
            counts = {what: n for (event, at, what), n in EXERCISED.items() if (event, at) == (name, phase)}
            legal = counts.pop(LEGAL, 0)
            can = (name, phase, LEGAL) in possible()
            cells.append(f"{legal if can or legal else '-'} / {sum(counts.values())}")
        lines.append(f"{name:24}" + "".join(f"{cell:>15}" for cell in cells))
    lines.append("")
    for code in Code:
        by = sorted({name for name, _, what in EXERCISED if what == code.value})
        count = sum(n for (_, _, what), n in EXERCISED.items() if what == code.value)
        lines.append(f"{code.value:24}{count:>9}  {', '.join(by) if len(by) < 9 else f'{len(by)} events'}")
    lines += ["", "never legal (-), since in every state of that phase they are:"]
    for name in names():
        never: dict[str, list[str]] = {}
        for phase in phases:
            codes = [what for event, at, what in sorted(possible()) if (event, at) == (name, phase)]
            if LEGAL not in codes:
                never.setdefault(" or ".join(codes), []).append(shown(phase))
        if never:
            lines.append(f"  {name}: " + "; ".join(f"{codes} ({', '.join(at)})" for codes, at in never.items()))
    return "\n".join(lines)
