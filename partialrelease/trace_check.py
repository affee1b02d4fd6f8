"""Ask TLC whether logs are behaviours of tla/PartialRelease.tla, and where one is not, at which event it stops.

A log says which events happened, so a log is a path through the specification's states, and TLC has only to follow it:
tla/TracePartialRelease.tla says how. Here the events are written as its actions, many jobs in one run of TLC.

The specification cannot tell apart two ranks that the log always names together. So the ranks of a job are sorted into
*classes* by the rank sets that its log and its R name, and each class is one rank to TLC: a job on 11,136 nodes whose
log tells two sets of nodes apart has two or three. Jobs that are alike but for that are one behaviour.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from attrs import define, field, frozen

from . import events as ev
from .check import Finding, Report, begin_report, known_ranks
from .idset import ALL_RANKS, IdSet
from .job import INACTIVE, Job, LastRank
from .report import name_ranks
from .tlc import TLCError, run

__all__ = [
    "MOST_EVENTS",
    "Answer",
    "Behaviour",
    "TooLongError",
    "Trace",
    "action_of",
    "answer_json",
    "answer_lines",
    "batches",
    "behaviour",
    "check_traces",
    "traces",
]

MOST_EVENTS: Final = 50_000
"""The longest life of one job that is taken: TLC needs about half a minute for it, and more than twice for two."""

_MOST_SHOWN: Final = 20  # classes of ranks, and holders
_WINDOW: Final = 100  # ended jobs that are kept for what may follow their `clean`, as in check

_ACTIONS: Final[dict[type[ev.Event], str]] = {
    ev.Submit: "Submit",
    ev.Validate: "Validate",
    ev.Invalidate: "Invalidate",
    ev.DependencyAdd: "Other",
    ev.DependencyRemove: "Other",
    ev.SetFlags: "Other",
    ev.Memo: "Other",
    ev.ResourceUpdate: "Other",
    ev.Depend: "Depend",
    ev.Priority: "Priority",
    ev.Urgency: "Reprioritize",
    ev.JobspecUpdate: "Reprioritize",
    ev.FluxRestart: "Reprioritize",
    ev.Start: "Start",
    ev.Finish: "Finish",
    ev.Free: "Free",
    ev.Clean: "Clean",
    ev.Unknown: "Other",
    ev.Malformed: "Malformed",
}
"""The actions of events that are what they are whatever they say; :func:`action_of` has the others."""


class TooLongError(Exception):
    """A job has more events than can be taken."""

    def __init__(self, entry: ev.Entry) -> None:
        super().__init__(entry)
        self.entry: Final = entry

    def __str__(self) -> str:
        job = "the job" if self.entry.job is None else f"job {self.entry.job}"
        return f"{job} has more than {MOST_EVENTS} events, the most that trace-check can take: the log was read to here"


@define
class Trace:
    """One job of a log.

    ``report``: what check says. ``entries``: the job's events; none where it began before the log. ``refused``: the
    index of the first of them that check refuses.
    """

    source: str
    report: Report
    entries: list[ev.Entry] = field(factory=list)
    refused: int | None = None

    @property
    def whole(self) -> bool:
        """Whether the log has its beginning."""
        return self.report.fragment is None


@frozen
class Behaviour:
    """A job as TLC sees it.

    ``actions``: its events, as records of TLA+. ``classes``: the ranks that class 1, 2, ... stands for; where R is not
    known, one of them has all that were not named. ``epilogs``, ``prologs``: the descriptions that ``"e1"``, ``"e2"``,
    ... and ``"p1"``, ... stand for.
    """

    actions: tuple[str, ...]
    classes: tuple[IdSet, ...]
    epilogs: tuple[str, ...]
    prologs: tuple[str, ...]


@frozen
class Answer:
    """What TLC says of a job. ``reached``: how many of its events the specification allows, from the first one on."""

    trace: Trace
    behaviour: Behaviour
    reached: int

    @property
    def stopped(self) -> ev.Entry | None:
        """The event that the specification does not allow, if there is one."""
        return self.trace.entries[self.reached] if self.reached < len(self.trace.entries) else None

    @property
    def finding(self) -> Finding | None:
        """The first violation that check finds."""
        return self.trace.report.findings[0] if self.trace.report.findings else None

    @property
    def agreed(self) -> bool:
        """Whether TLC and check agree: both accept the log, or both stop at the same event."""
        refused = self.trace.refused
        return self.reached == (len(self.trace.entries) if refused is None else refused)


def traces(source: str, entries: Iterable[ev.Entry], last_rank: LastRank = LastRank.KEEP) -> Iterator[Trace]:
    """The jobs of a log: each soon after it has ended, or at the end of the log.

    Raises :class:`NotALogStartError`, and :class:`TooLongError` in the end.
    """
    begin = Job(last_rank)
    active: dict[int | None, Trace] = {}
    ended: dict[int | None, Trace] = {}
    too_long: TooLongError | None = None
    for entry in entries:
        trace = active.pop(entry.job, None) or ended.get(entry.job)
        if trace is None:
            trace = Trace(source, begin_report(entry, begin))
        trace.report.step(entry)
        if trace.whole:
            trace.entries.append(entry)
            if len(trace.entries) > MOST_EVENTS:
                too_long = TooLongError(entry)
                break
            if trace.refused is None and trace.report.findings:
                trace.refused = len(trace.entries) - 1
        if trace.report.state.phase is not INACTIVE:
            active[entry.job] = trace
            continue
        ended[entry.job] = trace
        if len(ended) > _WINDOW:
            yield ended.pop(next(iter(ended)))
    yield from ended.values()
    yield from active.values()
    if too_long:
        raise too_long


def batches(jobs: Iterable[Trace]) -> Iterator[list[Trace]]:
    """Lists of jobs for one run of TLC each: one list, where they are not very many."""
    batch: list[Trace] = []
    events = 0
    for trace in jobs:
        batch.append(trace)
        events += len(trace.entries)
        if events > MOST_EVENTS:
            yield batch
            batch, events = [], 0
    if batch:
        yield batch


# -- a job as TLC sees it --


def behaviour(events: Sequence[ev.Event]) -> Behaviour:
    """The events of one job as actions of the specification."""
    classes = _classes(dict.fromkeys(ranks for event in events if (ranks := _named(event)) is not None))
    firsts = IdSet([ranks.min() for ranks in classes])
    epilogs: dict[str, str] = {}
    prologs: dict[str, str] = {}
    actions = tuple([action_of(event, firsts, epilogs, prologs) for event in events])
    return Behaviour(actions, classes, tuple(epilogs), tuple(prologs))


def _named(event: ev.Event) -> IdSet | None:
    """The ranks that the event names, or ``None`` where it names none or means "all" that somebody has."""
    match event:
        case ev.Alloc(ranks=ranks) | ev.PartialFree(ranks=ranks):
            return ranks
        case ev.Release(ranks=ranks) | ev.EpilogStart(ranks=ranks) if ranks is not None and ranks != ALL_RANKS:
            return ranks
        case _:
            return None


def _classes(sets: Iterable[IdSet]) -> tuple[IdSet, ...]:
    """The ranks in any of the sets, sorted by the sets that they are in; in the order of their first ranks.

    Ranks are looked at in runs, from one end of a run of a set to the next.
    """
    changes: dict[int, int] = {}  # rank -> bits of the sets that begin or end there
    for number, ranks in enumerate(sets):
        for first, last in ranks.runs():
            changes[first] = changes.get(first, 0) ^ (1 << number)
            changes[last + 1] = changes.get(last + 1, 0) ^ (1 << number)
    runs: dict[int, list[str]] = {}
    inside = 0
    for first, end in pairwise(sorted(changes)):
        inside ^= changes[first]
        if inside:
            runs.setdefault(inside, []).append(f"{first}-{end - 1}" if end - first > 1 else f"{first}")
    return tuple([IdSet(",".join(parts)) for parts in runs.values()])


def action_of(event: ev.Event, firsts: IdSet, epilogs: dict[str, str], prologs: dict[str, str]) -> str:
    """The event as a record. ``firsts``: of each class the first rank. New descriptions are given names."""

    def named(ranks: IdSet) -> str:
        return _tla_set(IdSet([firsts.index(first) + 1 for first in firsts & ranks]))

    def some(ranks: IdSet | None) -> str:
        return "All" if ranks is None or ranks == ALL_RANKS else named(ranks)

    def epilog(description: str) -> str:
        return f'"{epilogs.setdefault(description, f"e{len(epilogs) + 1}")}"'

    def prolog(description: str) -> str:
        return f'"{prologs.setdefault(description, f"p{len(prologs) + 1}")}"'

    match event:
        case ev.Alloc():
            return _record("Alloc", ranks=named(event.ranks))
        case ev.PrologStart():
            return _record("PrologStart", prolog=prolog(event.description))
        case ev.PrologFinish():
            return _record("PrologFinish", prolog=prolog(event.description))
        case ev.JobException(severity=0):
            return _record("SchedulerRestart" if event.type == "scheduler-restart" else "Exception")
        case ev.JobException():
            return _record("Other")
        case ev.Release(description=None):
            return _record("ExecRelease", ranks=some(event.ranks), final=str(event.final).upper())
        case ev.Release(final=True):
            return _record("Malformed")
        case ev.Release(description=str(description)):
            return _record("Release", epilog=epilog(description), ranks=some(event.ranks))
        case ev.EpilogStart():
            return _record("EpilogStart", epilog=epilog(event.description), ranks=some(event.ranks))
        case ev.EpilogFinish():
            return _record("EpilogFinish", epilog=epilog(event.description))
        case ev.PartialFree():
            return _record("PartialFree", ranks=named(event.ranks))
        case _:
            return _record(_ACTIONS[type(event)])


def _record(action: str, **arguments: str) -> str:
    values = {"action": f'"{action}"', **arguments}
    return f"[{', '.join(f'{name} |-> {value}' for name, value in values.items())}]"


def _tla_set(numbers: IdSet) -> str:
    runs = [f"{first}..{last}" if first < last else f"{{{first}}}" for first, last in numbers.runs()]
    return " \\cup ".join(runs) or "{}"


# -- TLC --

_REACHED: Final = re.compile(r'^<<"reached", (\d+), (\d+)>>$', re.MULTILINE)


def check_traces(jobs: Sequence[Trace], last_rank: LastRank = LastRank.KEEP) -> tuple[list[Answer], int]:
    """Have TLC follow these jobs, all in one run. Returns its answers in their order, and how many behaviours they are.

    Raises :class:`TLCError`.
    """
    behaviours = [behaviour([entry.event for entry in trace.entries]) for trace in jobs]
    different = list(dict.fromkeys(each.actions for each in behaviours))
    reached = dict(zip(different, _follow(different, behaviours, last_rank), strict=True)) if different else {}
    return [Answer(t, b, reached[b.actions]) for t, b in zip(jobs, behaviours, strict=True)], len(different)


def _follow(different: list[tuple[str, ...]], behaviours: list[Behaviour], last_rank: LastRank) -> list[int]:
    """How many events of each TLC could follow."""
    numbers: dict[str, int] = {}
    for actions in different:
        for action in actions:
            numbers.setdefault(action, len(numbers) + 1)
    written = ",\n".join(f"  <<{', '.join(str(numbers[action]) for action in actions)}>>" for actions in different)
    events = ",\n  ".join(numbers)
    module = f"""---- MODULE Logs ----
EXTENDS TracePartialRelease
Events == <<
  {events}>>
Traces == <<
{written}>>
LogsInit == TraceInit(Traces)
LogsNext == TraceNext(Events, Traces)
LogsEnd == TraceEnds(Events, Traces)
====
"""
    ranks = max(1, *(len(each.classes) for each in behaviours))  # the specification wants one where none is named too
    epilogs = max(len(each.epilogs) for each in behaviours)
    prologs = max(len(each.prologs) for each in behaviours)
    config = f"""CONSTANTS
  Ranks = {{{", ".join(str(n + 1) for n in range(ranks))}}}
  Epilogs = {{{", ".join(f'"e{n + 1}"' for n in range(epilogs))}}}
  Prologs = {{{", ".join(f'"p{n + 1}"' for n in range(prologs))}}}
  LastRank = "{last_rank.value}"
  All = All
INIT LogsInit
NEXT LogsNext
INVARIANT LogsEnd
"""
    with tempfile.TemporaryDirectory(prefix="partialrelease-") as name:
        folder = Path(name)
        (folder / "Logs.tla").write_text(module)
        (folder / "Logs.cfg").write_text(config)
        output = run(folder / "Logs.tla", folder / "Logs.cfg", options=["-deadlock"]).output
    found = {int(match[1]): int(match[2]) for match in _REACHED.finditer(output)}
    if len(found) != len(different):
        raise TLCError(f"TLC followed {len(found)} of {len(different)} logs to their ends, and does not say why")
    return [found[number + 1] for number in range(len(different))]


# -- what it found, for people and for programs --


def answer_lines(answer: Answer, explained: bool = False) -> Iterator[str]:
    """What to say of a job; ``explained``: and what TLC saw, also where the log is accepted."""
    seen, stopped, finding = answer.behaviour, answer.stopped, answer.finding
    source, job, events = answer.trace.source, answer.trace.report.job, len(answer.trace.entries)
    name = source if job is None else f"{source} job {job}"
    if stopped is None:
        yield f"{name}: accepted ({events} event{'' if events == 1 else 's'})"
    else:
        place = f"stops at line {stopped.line}: {stopped.event.name} (event {answer.reached + 1} of {events})"
        why = "which the spec does not allow in this state"
        if seen.actions[answer.reached] == _record("Malformed"):
            why = "which is malformed: the spec has no words for it"
        yield f"{name}: {place}, {why}"
    if finding is not None:
        place = "" if answer.agreed else f"line {finding.line}: {finding.violation.event.name}: "
        yield f"  check says: {place}{finding.violation}"
    if not answer.agreed:
        yield f"  check DISAGREES{'' if finding else ': it accepts this'}: check or the spec is wrong, please report it"
    if stopped is None and not explained:
        return
    if stopped is not None:
        yield f"  in TLA+: {seen.actions[answer.reached]}"
    yield from _some([f"{number} = {_name_class(ranks)}" for number, ranks in enumerate(seen.classes, 1)], "classes")
    yield from _some([f"e{number} = epilog {name!r}" for number, name in enumerate(seen.epilogs, 1)], "epilogs")
    yield from _some([f"p{number} = prolog {name!r}" for number, name in enumerate(seen.prologs, 1)], "prologs")


def _some(lines: list[str], what: str) -> Iterator[str]:
    for line in lines[:_MOST_SHOWN]:
        yield f"      {line}"
    if len(lines) > _MOST_SHOWN:
        yield f"      ... ({len(lines)} {what} in all)"


def _name_class(ranks: IdSet) -> str:
    if not known_ranks(ranks):
        return "all other ranks (which ones is not known: no R)"
    return f"{name_ranks(ranks)}{f', {len(ranks)} in all' if len(ranks) > 2 else ''}"


def answer_json(answer: Answer) -> dict[str, Any]:
    """The object that ``trace-check --format json`` prints for a job.

    ``classes``: of class 1, 2, ... the ranks, ``None`` for all others of an R that is not known.
    """
    stopped, finding, seen = answer.stopped, answer.finding, answer.behaviour
    return {
        "source": answer.trace.source,
        "job": answer.trace.report.job,
        "events": len(answer.trace.entries),
        "accepted": stopped is None,
        "line": stopped and stopped.line,
        "event": stopped and stopped.event.name,
        "action": seen.actions[answer.reached] if stopped else None,
        "classes": [str(ranks) if known_ranks(ranks) else None for ranks in seen.classes],
        "epilogs": list(seen.epilogs),
        "prologs": list(seen.prologs),
        "agreed": answer.agreed,
        "check": finding
        and {"line": finding.line, "code": finding.violation.code.value, "message": finding.violation.message},
    }
