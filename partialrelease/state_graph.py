"""Is the code the machine that the spec says? The complete state graphs of both, within bounds, and how they differ.

A :class:`Machine` is one machine in both languages. :func:`graph_of_tlc` is the graph that TLC finds of the spec,
:func:`graph_of_python` the one that the code spans, and :func:`differences` compares them both ways: what one allows
the other allows, with the same outcome, and what one refuses the other refuses. Events that are never legal count too.

States are compared as TLA+ values, which are frozen Python values here: sets are frozensets, strings and model values
are ``str``, and a function (which a record and a tuple are too) is a :class:`Function`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Generic, TypeVar

from attrs import frozen

from . import events as ev
from . import tlc
from .idset import ALL_RANKS, IdSet
from .job import Job, LastRank, effect, guard
from .tlavalue import Function, Value, read_value, show_value

__all__ = [
    "Difference",
    "Graph",
    "Machine",
    "State",
    "difference_lines",
    "differences",
    "events_of_one_job",
    "graph_of_python",
    "graph_of_tlc",
    "one_job",
    "show_state",
]

J = TypeVar("J")  # the machine's state in Python
E = TypeVar("E")  # its events

State = tuple[Value, ...]  # the values of a graph's variables, in its order
Outcomes = frozenset[State | None]  # where an event leads; None: it is refused

REFUSED: Final[Outcomes] = frozenset({None})


@frozen
class Machine(Generic[J, E]):
    """One machine in both languages, within bounds.

    ``module``: the spec. ``constants``: its constants, as TLA+ text. ``events``: all events that there are, each as an
    action of the spec with its arguments, and as the events that this is in Python. ``first``: the first state in
    Python. ``step``: the state after an event, or ``None`` if it is refused. ``values``: the spec's variables, of a
    state in Python.
    """

    module: str
    constants: Mapping[str, str]
    events: Mapping[str, Sequence[E]]
    first: J
    step: Callable[[J, E], J | None]
    values: Callable[[J], dict[str, Value]]


@frozen(eq=False)
class Graph:
    """A state graph. ``moves``: the states, and of each the events that are not refused, with their outcomes."""

    variables: tuple[str, ...]
    initial: frozenset[State]
    moves: dict[State, dict[str, Outcomes]]
    seconds: float

    @property
    def transitions(self) -> int:
        return sum(map(len, self.moves.values()))


@frozen
class Difference:
    """An event on whose outcome the graphs differ. ``path``: events that lead to ``state``, the fewest.

    Where the graphs begin differently ``state`` is ``None``, and the outcomes are the initial states.
    """

    path: tuple[str, ...]
    state: State | None
    event: str
    ours: Outcomes
    theirs: Outcomes


_NEW: Final = ()  # the state of none


# -- the graphs ------------------------------------------------------------------------------------------------------


def graph_of_python(
    machine: Machine[J, E],
    *,
    within: Graph | None = None,
    on_progress: Callable[[int], object] = lambda states: None,
) -> Graph:
    """The graph that the code spans from its first state.

    States that ``within`` does not have are not gone on from: what is wrong may have no end.
    """
    began = time.monotonic()
    variables = tuple(sorted(machine.values(machine.first)))
    first = _state(machine, machine.first)
    todo = [(machine.first, first)]
    states: dict[J | None, State | None] = {None: None, machine.first: first}
    moves: dict[State, dict[str, Outcomes]] = {}
    for here, state in todo:
        if within is not None and state not in within.moves:
            continue
        # Several states in Python may be one of the spec (there the order of actions is no matter), and so may several
        # events: all must do the same, or the outcomes are more than one.
        found = moves.setdefault(state, {})
        on_progress(len(moves))
        for name, same in machine.events.items():
            outcomes = set(found.get(name, ()))
            for event in same:
                after = machine.step(here, event)
                outcome = states.get(after, _NEW)
                if after is not None and outcome is _NEW:
                    outcome = states[after] = _state(machine, after)
                    todo.append((after, outcome))
                outcomes.add(outcome)
            found[name] = frozenset(outcomes)
    for found in moves.values():
        for name in [name for name, outcomes in found.items() if outcomes == REFUSED]:
            del found[name]
    return Graph(variables, frozenset({first}), moves, time.monotonic() - began)


def _state(machine: Machine[J, E], of: J) -> State:
    return tuple(value for _, value in sorted(machine.values(of).items()))


def graph_of_tlc(
    machine: Machine[Any, Any],
    *,
    init: str = "Init",
    modules: Mapping[str, str] | None = None,
    on_progress: Callable[[int, int], object] | None = None,
) -> Graph:
    """The graph that TLC finds, from ``init`` on. ``modules``: more than there are in the spec's folder, name -> text.

    Raises :class:`~partialrelease.tlc.TLCError`.
    """
    # TLC labels a move with the name of the action but not its arguments; so each event is an action of its own.
    # (It would look through a definition that is nothing but another's name.)
    actions = "".join(f"E{n} == /\\ TRUE\n  /\\ {event}\n" for n, event in enumerate(machine.events))
    following = "".join(f"  \\/ E{n}\n" for n in range(len(machine.events)))
    text = f"---- MODULE Graph ----\nEXTENDS {machine.module}\n{actions}GraphNext ==\n{following}====\n"
    settings = [f"  {name} = {value}" for name, value in machine.constants.items()]
    config = "\n".join(["CONSTANTS", *settings, f"INIT {init}", "NEXT GraphNext", ""])
    try:
        with TemporaryDirectory(prefix="partialrelease-") as scratch:
            folder = Path(scratch)
            files = {f"{name}.tla": content for name, content in {"Graph": text, **(modules or {})}.items()}
            for name, content in {**files, "Graph.cfg": config}.items():
                (folder / name).write_text(content, encoding="utf-8")
            dump = folder / "graph.dot"
            result = tlc.run(
                folder / "Graph.tla", folder / "Graph.cfg", dump=dump, options=["-deadlock"], on_progress=on_progress
            )
            with dump.open(encoding="utf-8") as lines:
                return _read_dump(lines, tuple(machine.events), result.seconds)
    except OSError as error:
        raise tlc.TLCError(f"TLC has no scratch folder to work in: {error}; set TMPDIR") from None


_NODE = re.compile(r'(-?\d+) \[label="((?:[^"\\]|\\.)*)"(,style = filled)?')
_EDGE = re.compile(r'(-?\d+) -> (-?\d+) \[label="E(\d+)"')


def _read_dump(lines: Iterable[str], events: Sequence[str], seconds: float) -> Graph:
    states: dict[str, State] = {}
    ends: dict[str, dict[int, set[str]]] = {}
    initial: set[State] = set()
    variables: tuple[str, ...] = ()
    for line in lines:
        if edge := _EDGE.match(line):
            source, end, event = edge.groups()
            ends.setdefault(source, {}).setdefault(int(event), set()).add(end)
        elif node := _NODE.match(line):
            values = _read_label(node[2])
            variables = tuple(values)
            states[node[1]] = tuple(values.values())
            if node[3]:
                initial.add(states[node[1]])
    moves: dict[State, dict[str, Outcomes]] = {state: {} for state in states.values()}
    for source, found in ends.items():
        for event, after in found.items():
            moves[states[source]][events[event]] = frozenset(states[end] for end in after)
    return Graph(variables, frozenset(initial), moves, seconds)


def _read_label(label: str) -> dict[str, Value]:
    """The variables in alphabetical order, and their values."""
    text = re.sub(r"\\(.)", lambda escaped: "\n" if escaped[1] == "n" else escaped[1], label)
    pairs = [part.partition(" = ") for part in re.split(r"(?:^|\n)/\\ ", text) if part]
    return {name: read_value(value) for name, _, value in sorted(pairs)}


def differences(ours: Graph, theirs: Graph) -> list[Difference]:
    """On what the graphs differ, what takes the fewest events to come to first; empty if they are equal.

    Looked at are the states that both come to by moves on which they agree: all that differs comes after these.
    """
    if ours.variables != theirs.variables:
        raise ValueError(f"variables are {ours.variables} and {theirs.variables}")
    if ours.initial != theirs.initial:
        return [Difference((), None, "", frozenset(ours.initial), frozenset(theirs.initial))]
    found = []
    paths: dict[State, tuple[State, str] | None] = dict.fromkeys(ours.initial)
    todo = list(ours.initial)
    for state in todo:
        mine, other = ours.moves[state], theirs.moves[state]
        for event in sorted(mine.keys() | other.keys()):
            outcomes = mine.get(event, REFUSED)
            if outcomes != other.get(event, REFUSED):
                path = tuple(_path(paths, state))[::-1]
                found.append(Difference(path, state, event, outcomes, other.get(event, REFUSED)))
                continue
            for after in outcomes - REFUSED:
                if after is not None and after not in paths:
                    paths[after] = state, event
                    todo.append(after)
    return found


def _path(paths: Mapping[State, tuple[State, str] | None], state: State) -> Iterator[str]:
    while before := paths[state]:
        state, event = before
        yield event


def difference_lines(graph: Graph, difference: Difference) -> list[str]:
    """The difference in lines for people. ``graph``: one of the two."""
    lines = ["the first state"]
    if difference.state is not None:
        lines = [f"after {', '.join(difference.path) or 'nothing'}"]
        lines.append(f"  state:  {_outcome(graph, None, difference.state)}")
        lines.append(f"  event:  {difference.event}")
    for side, outcomes in (("Python", difference.ours), ("TLA+", difference.theirs)):
        lines += sorted(f"  {side + ':':7} {_outcome(graph, difference.state, outcome)}" for outcome in outcomes)
    return lines


def show_state(state: State) -> str:
    """The state's values as TLA+ text, in the order of the graph's variables."""
    return " ".join(map(show_value, state))


def _outcome(graph: Graph, before: State | None, after: State | None) -> str:
    """``after``, or what of it is not as before."""
    if after is None:
        return "refuses"
    same = before or (None,) * len(after)
    changed = [
        f"{name} = {show_value(value)}"
        for name, value, old in zip(graph.variables, after, same, strict=True)
        if value != old
    ]
    return ", ".join(changed) or "changes nothing"


# -- the machine of one job ------------------------------------------------------------------------------------------


def one_job(
    ranks: int = 2, epilogs: int = 1, prologs: int = 1, last_rank: LastRank = LastRank.KEEP
) -> Machine[Job, ev.Event]:
    """``PartialRelease`` and :mod:`partialrelease.job`, with so many ranks, and descriptions of epilogs and prologs."""
    every = IdSet(range(ranks))
    epilog_names, prolog_names = [f"e{n}" for n in range(epilogs)], [f"p{n}" for n in range(prologs)]

    def ids(of: IdSet) -> Value:
        return frozenset(of & every)

    def references(job: Job) -> Function:
        found: dict[str, Value] = {}
        for holder in job.actions:
            name = holder.description
            while name in found:  # the spec knows no second one: this is a state that it does not have
                name += " again"
            found[name] = ids(holder.ranks)
        return Function(found)

    def values(job: Job) -> dict[str, Value]:
        return {
            "phase": job.phase.value,
            "exec": job.exec.value,
            "execRanks": ids(job.exec_ranks),
            "actions": references(job),
            "allocation": ids(job.allocation),
            "held": ids(job.held),
            "released": ids(job.released),
            "closed": job.closed,
        }

    def step(job: Job, event: ev.Event) -> Job | None:
        return effect(job, event) if guard(job, event) is None else None

    constants = {
        "Ranks": show_value(ids(every)),
        "Epilogs": show_value(frozenset(epilog_names)),
        "Prologs": show_value(frozenset(prolog_names)),
        "LastRank": show_value(last_rank.value),
        "All": "All",
    }
    return Machine(
        "PartialRelease",
        constants,
        events_of_one_job(ranks, epilog_names, prolog_names),
        Job(last_rank),
        step,
        values,
    )


def events_of_one_job(ranks: int, epilogs: list[str], prologs: list[str]) -> dict[str, list[ev.Event]]:
    """All events that there are, each as an action of the spec, and as the events that this is in Python."""
    mild = ev.JobException("scheduler-restart", 3)
    events: dict[str, list[ev.Event]] = {
        "Submit": [ev.Submit()],
        "Validate": [ev.Validate()],
        "Invalidate": [ev.Invalidate()],
        "Depend": [ev.Depend()],
        "Priority": [ev.Priority()],
        "Reprioritize": [ev.Urgency(), ev.JobspecUpdate(), ev.FluxRestart()],
        "Other": [
            ev.Memo(),
            ev.DependencyAdd(),
            ev.DependencyRemove(),
            ev.SetFlags(),
            ev.ResourceUpdate(),
            ev.Unknown("debug.x"),
            mild,
        ],
        "Start": [ev.Start()],
        "Finish": [ev.Finish()],
        "Exception": [ev.JobException("cancel", 0)],
        "SchedulerRestart": [ev.JobException("scheduler-restart", 0)],
        "Free": [ev.Free()],
        "Clean": [ev.Clean()],
    }
    sets = [IdSet(part) for part in chain.from_iterable(combinations(range(ranks), k) for k in range(ranks + 1))]
    parts = {show_value(frozenset(part)): part for part in sets}
    for text, part in parts.items():
        events[f"Alloc({text})"] = [ev.Alloc(part)]
        events[f"PartialFree({text})"] = [ev.PartialFree(part)]
    choices = {**parts, "All": ALL_RANKS}
    for text, part in choices.items():
        events[f"ExecRelease({text}, FALSE)"] = [ev.Release(part, False)]
        events[f"ExecRelease({text}, TRUE)"] = [ev.Release(part, True)]
    for name in prologs:
        events[f'PrologStart("{name}")'] = [ev.PrologStart(name)]
        events[f'PrologFinish("{name}")'] = [ev.PrologFinish(name)]
    for name in epilogs:
        events[f'EpilogFinish("{name}")'] = [ev.EpilogFinish(name)]
        for text, part in choices.items():
            events[f'Release("{name}", {text})'] = [ev.Release(part, False, name)]
            events[f'EpilogStart("{name}", {text})'] = [ev.EpilogStart(name, part)]
        events[f'EpilogStart("{name}", All)'].append(ev.EpilogStart(name))
    return events
