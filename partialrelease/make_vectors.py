"""Make the conformance vectors anew: ``python -m partialrelease.make_vectors spec/vectors``. Needs the extra ``[tla]``.

What must be answered is what TLC says, of tla/PartialRelease.tla and tla/Conformance.tla: the states, what is derived
from them, what is posted next, and which violation a refused event is. Nothing of it comes from the Python rules, which
have to pass the vectors as any other implementation has. (Whether a context is malformed is known here, from RFC 21:
the specification has no words for it.)
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import define, field, frozen

from . import events as ev
from . import state_graph as sg
from .eventlog import LogError, find_r, open_log, read_log, read_r
from .idset import ALL_RANKS, IdSet
from .job import LastRank
from .protocol import can_be_asked
from .tlavalue import show_value
from .tlc import TLCError
from .trace_check import action_of
from .vectors import INDEX

__all__ = ["make_vectors"]

VERSION: Final = "1.0.0"
_NAMES: Final = ("a", "b")  # a prolog and an epilog may have the same description
_FORMAT: Final = 1


def make_vectors(say: Callable[[str], object] = lambda line: None) -> dict[str, bytes]:
    """The files, by name. Raises :class:`~partialrelease.tlc.TLCError`."""
    files: dict[str, _File] = {}
    files["policies"] = _logs(_POLICIES, "the policies of other resource managers, as events; states: TLC")
    files["logs"] = _logs(_real_logs(), "eventlogs of Flux (tests/data/eventlogs); states: TLC")
    files["contexts"] = _contexts()
    keep = _graph(2, 1, 1, LastRank.KEEP)
    files["keep-2-1-1"] = _cover("2 ranks, 1 epilog, 1 prolog, all of TLC's state graph", keep, LastRank.KEEP)
    names = _graph(1, 2, 2, LastRank.KEEP)
    files["keep-1-2-2"] = _cover("1 rank, 2 epilogs, 2 prologs, all of TLC's state graph", names, LastRank.KEEP)
    for setting in (LastRank.DEFER, LastRank.WITH_LAST):
        origin = "2 ranks, 1 epilog, 1 prolog, of TLC's state graph what is not as with keep"
        files[f"{setting.value}-2-1-1"] = _cover(origin, _graph(2, 1, 1, setting), setting, known=keep)
    written = {f"{name}.json": file.text().encode() for name, file in files.items()}
    for name, file in files.items():
        say(f"{name}: {len(file.vectors)} vectors, {len(written[f'{name}.json'])} bytes")
    index = {
        "format": _FORMAT,
        "version": VERSION,
        "files": {
            f"{name}.json": {
                "sha256": hashlib.sha256(written[f"{name}.json"]).hexdigest(),
                "bytes": len(written[f"{name}.json"]),
                "vectors": len(file.vectors),
                **file.covers,
            }
            for name, file in files.items()
        },
    }
    return {INDEX: f"{json.dumps(index, indent=1)}\n".encode(), **written}


# -- a file --


@define
class _File:
    """The vectors of one file, and the tables that their numbers point into."""

    origin: str
    requests: dict[str, int] = field(factory=dict)
    states: dict[str, int] = field(factory=dict)
    vectors: list[dict[str, Any]] = field(factory=list)
    covers: dict[str, int] = field(factory=dict)  # of TLC's graph

    def request(self, event: ev.Event) -> int:
        request: dict[str, Any] = {"name": event.name}
        if context := ev.to_context(event):
            request["context"] = context
        if isinstance(event, ev.Alloc):
            request["R"] = str(event.ranks)
        return self.requests.setdefault(_json(request), len(self.requests))

    def queued(self, name: str) -> int:
        return self.requests.setdefault(_json({"queued": [name]}), len(self.requests))

    def state(self, state: _State, posts: bool = True) -> int:
        post = state.post() if posts else None
        sets = {name: str(state.ranks(name)) for name in ("held", "referenced", "releasable", "released")}
        return self.states.setdefault(_json({"phase": state.of["phase"], **sets, "post": post}), len(self.states))

    def add(self, last_rank: LastRank, initial: int, steps: list[Any], **more: str) -> None:
        self.vectors.append({**more, "last_rank": last_rank.value, "initial": initial, "steps": steps})

    def text(self) -> str:
        head = f'{{"format":{_FORMAT},"version":"{VERSION}",\n"origin":{_json(self.origin)},\n'
        tables = f'"requests":[\n{_lines(self.requests)}],\n"states":[\n{_lines(self.states)}],\n'
        return f'{head}{tables}"vectors":[\n{_lines(map(_json, self.vectors))}]}}\n'


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _lines(of: Iterable[str]) -> str:
    return ",\n".join(of)


# -- what TLC says --


@frozen
class _State:
    """A state of TLC's, with what it tells of it. Ranks are one more there than here."""

    of: dict[str, Any]

    def ranks(self, name: str) -> IdSet:
        return IdSet([rank - 1 for rank in self.of[name]])

    def code(self, event: int) -> str:
        return str(self.of["codes"][event])

    def post(self) -> dict[str, Any] | None:
        match dict(self.of["posts"]):
            case {1: name, 2: ranks}:
                return {"name": name, "context": {"ranks": str(IdSet([rank - 1 for rank in ranks]))}}
            case {1: name}:
                return {"name": name}
        return None


@frozen
class _Graph:
    """TLC's graph. ``events``: those that are tried in each state. ``moves``: state -> event -> state."""

    events: list[list[ev.Event]]
    first: sg.State
    moves: dict[sg.State, dict[int, sg.State]]
    states: dict[sg.State, _State]


_MODULE: Final = """---- MODULE Vectors ----
EXTENDS TracePartialRelease, Conformance
VARIABLE told
Events == <<
  {events}>>
Traces == <<{traces}>>
VectorsInit == Init /\\ trace \\in DOMAIN Traces /\\ step = 0 /\\ told = <<>>
Tell == told = <<>> /\\ told' = Tells(Events) /\\ UNCHANGED <<vars, trace, step>>
Try(event) == told = <<>> /\\ Happens(event) /\\ UNCHANGED <<trace, step, told>>
Follow ==
  /\\ told = <<>>
  /\\ step < Len(Traces[trace])
  /\\ LET event == Events[Traces[trace][step + 1]]
     IN IF Code(event) = "" THEN Happens(event) ELSE UNCHANGED vars
  /\\ step' = step + 1
  /\\ UNCHANGED <<trace, told>>
====
"""
"""Each state has a step to itself with what is to be told of it, so that TLC finds that out once."""


def _ask_tlc(
    records: Sequence[str], traces: Sequence[Sequence[int]], steps: list[str], bounds: dict[str, Any]
) -> tuple[sg.Graph, dict[sg.State, _State]]:
    """The graph of what ``steps`` do, and of each state what TLC tells."""
    module = _MODULE.format(
        events=",\n  ".join(records),
        traces=",\n  ".join(f"<<{', '.join(str(number + 1) for number in trace)}>>" for trace in traces),
    )
    constants = {name: show_value(value) for name, value in bounds.items()}
    machine: sg.Machine[None, ev.Event] = sg.Machine(
        "Vectors",
        {**constants, "All": "All"},
        {step: [] for step in ["Tell", *steps]},
        None,
        lambda job, _: job,
        lambda _: {},
    )
    graph = sg.graph_of_tlc(machine, init="VectorsInit", modules={"Vectors": module})
    states = {}
    for state, found in graph.moves.items():
        if "Tell" not in found:
            continue
        (telling,) = found.pop("Tell")
        assert telling is not None
        of: dict[str, Any] = dict(zip(graph.variables, telling, strict=True))
        told = dict(of.pop("told"))
        codes = [code for _, code in sorted(told.pop("codes"))]
        states[state] = _State({**of, **told, "codes": codes})
    return graph, states


def _bounds(ranks: int, epilogs: int, prologs: int, last_rank: LastRank) -> dict[str, Any]:
    return {
        "Ranks": frozenset(range(1, ranks + 1)),
        "Epilogs": frozenset(f"e{n}" for n in range(1, epilogs + 1)),
        "Prologs": frozenset(f"p{n}" for n in range(1, prologs + 1)),
        "LastRank": last_rank.value,
    }


def _records(events: Iterable[ev.Event], ranks: IdSet) -> tuple[list[str], int, int]:
    """The events as records, and how many epilogs and prologs there are."""
    epilogs: dict[str, str] = {}
    prologs: dict[str, str] = {}
    return [action_of(event, ranks, epilogs, prologs) for event in events], len(epilogs), len(prologs)


def _graph(ranks: int, epilogs: int, prologs: int, last_rank: LastRank) -> _Graph:
    """All states, and in each what becomes of each event."""
    events = [*sg.events_of_one_job(ranks, list(_NAMES[:epilogs]), list(_NAMES[:prologs])).values()]
    records, *actions = _records((same[0] for same in events), IdSet(range(ranks)))
    if actions != [epilogs, prologs]:
        raise ValueError("the events do not name what there is")
    steps = [f"Try({record})" for record in records]
    graph, states = _ask_tlc(records, [[0]], steps, _bounds(ranks, epilogs, prologs, last_rank))
    numbers = {step: number for number, step in enumerate(steps)}
    moves: dict[sg.State, dict[int, sg.State]] = {}
    for state in states:
        moves[state] = {}
        for step, outcomes in graph.moves[state].items():
            (after,) = outcomes
            assert after is not None
            moves[state][numbers[step]] = after
        # What is refused is a violation, and nothing else is.
        refused = {number for number in range(len(events)) if states[state].code(number)}
        if refused != set(range(len(events))) - moves[state].keys():
            raise ValueError(f"Conformance.tla has no violation for what is refused, or one for what is not: {state}")
        post = states[state].post()
        if post and not any(_is(events[number][0], post) for number in moves[state]):
            raise ValueError(f"Conformance.tla posts what may not happen: {post} in {state}")
    (first,) = graph.initial
    return _Graph(events, first, moves, states)


def _is(event: ev.Event, post: dict[str, Any]) -> bool:
    return event.name == post["name"] and ev.to_context(event) == post.get("context")


# -- walks that cover a graph --


def _cover(origin: str, graph: _Graph, last_rank: LastRank, known: _Graph | None = None) -> _File:
    """Walks from the beginning that together make every move that changes something, and in every state try all else.

    ``known``: a graph whose moves and states need no more. The specification allows more than one walk would need;
    each goes where there is most left to do.
    """
    walk = _Walks(graph, _File(f"{origin}; TLC"), last_rank, known)
    walk.file.covers = {"states": len(walk.untried), "steps": sum(map(len, walk.moves_left.values()))}
    walk.all()
    return walk.file


class _Walks:
    def __init__(self, graph: _Graph, file: _File, last_rank: LastRank, known: _Graph | None) -> None:
        self.graph = graph
        self.file = file
        self.last_rank = last_rank
        self.variant: defaultdict[int, int] = defaultdict(int)
        order = {state: number for number, state in enumerate(sorted(graph.moves, key=sg.show_state))}
        self.order = order
        self.changing = {
            state: {event: after for event, after in sorted(found.items()) if after != state}
            for state, found in sorted(graph.moves.items(), key=lambda item: order[item[0]])
        }
        old = _OfGraph(known)
        self.moves_left = {
            state: [
                event
                for event, after in found.items()
                if not old.has_move(graph.states[state], event, graph.states[after])
            ]
            for state, found in self.changing.items()
        }
        self.untried = {state for state in order if not old.has_state(graph.states[state])}
        restart = [n for n, same in enumerate(graph.events) if same[0] == ev.JobException("scheduler-restart", 0)]
        # After resources are lost in use, what then is the case is told otherwise by a checker: nothing follows it.
        (self.restart,) = restart
        self.losing = {state for state in self.untried if graph.states[state].code(self.restart) == "ResourcesLost"}

    def all(self) -> None:
        while True:
            steps: list[Any] = []
            state = self.graph.first
            worked = self.probe(state, steps)
            while (path := self.to_next(state)) is not None:
                for event in path:
                    new = event in self.moves_left[state]
                    if new:
                        self.moves_left[state].remove(event)
                    state = self.changing[state][event]
                    steps.append([self.take(event), self.file.state(self.graph.states[state])])
                    worked = True
                    if not self.probe(state, steps) and new:
                        self.probe_holders(state, steps)
            if not worked:
                return self.lose()
            self.end(state, steps)

    def end(self, state: sg.State, steps: list[Any]) -> None:
        if state in self.losing:
            self.losing.remove(state)
            steps.append([self.take(self.restart), "ResourcesLost"])
        self.file.add(self.last_rank, self.file.state(self.graph.states[self.graph.first]), steps)

    def lose(self) -> None:
        """What is left to try where it must be the last."""
        for goal in sorted(self.losing, key=self.order.__getitem__):
            state = self.graph.first
            steps: list[Any] = []
            for event in self.search(state, goal.__eq__) or []:
                state = self.changing[state][event]
                steps.append([self.take(event), self.file.state(self.graph.states[state])])
            self.end(state, steps)

    def take(self, event: int) -> int:
        """One of the events that do the same; each in its turn."""
        same = self.graph.events[event]
        self.variant[event] += 1
        return self.file.request(same[self.variant[event] % len(same)])

    def probe(self, state: sg.State, steps: list[Any]) -> bool:
        """Everything that changes nothing, once a state."""
        if state not in self.untried:
            return False
        self.untried.remove(state)
        here = self.graph.states[state]
        outcomes: defaultdict[str | int, list[int]] = defaultdict(list)
        for number, same in enumerate(self.graph.events):
            code = here.code(number)
            if code and code != "ResourcesLost":
                outcomes[code].append(self.take(number))
            elif self.graph.moves[state].get(number) == state:
                outcomes[self.file.state(here)] += map(self.file.request, same)
        waiting = self.file.queued("epilog-start")
        steps.append([[waiting], self.file.state(here, posts=False)])
        steps.append([[self.file.queued("memo")], self.file.state(here)])
        steps += [[asked, outcome] for outcome, asked in outcomes.items()]
        return True

    def probe_holders(self, state: sg.State, steps: list[Any]) -> None:
        """Whether no holder has more than it should: an implementation may have come to this state otherwise before."""
        here = self.graph.states[state]
        lacking = [
            self.file.request(same[0])
            for number, same in enumerate(self.graph.events)
            if here.code(number) == "NotHeld" and isinstance(same[0], ev.Release)
        ]
        if lacking:
            steps.append([lacking, "NotHeld"])

    def to_next(self, state: sg.State) -> list[int] | None:
        """The events that lead to where something is left, with the first move of it; the nearest."""
        path = self.search(state, lambda here: here in self.untried or bool(self.moves_left[here]))
        if path is None:
            return None
        for event in path:
            state = self.changing[state][event]
        if not self.moves_left[state]:
            return path or None
        # Where there is most left to do: so walks are long, and few.
        best = max(self.moves_left[state], key=lambda event: len(self.moves_left[self.changing[state][event]]))
        return [*path, best]

    def search(self, state: sg.State, wanted: Callable[[sg.State], bool]) -> list[int] | None:
        before: dict[sg.State, tuple[sg.State, int] | None] = {state: None}
        todo = deque([state])
        while todo:
            here = todo.popleft()
            if wanted(here):
                path = []
                while step := before[here]:
                    here, event = step
                    path.append(event)
                return path[::-1]
            for event, after in self.changing[here].items():
                if after not in before:
                    before[after] = here, event
                    todo.append(after)
        return None


class _OfGraph:
    """What a graph has, as it can be seen from without: the same state of another setting."""

    def __init__(self, graph: _Graph | None) -> None:
        self.states = {}
        self.moves = set()
        if graph is not None:
            self.states = {self.key(state): state.of for state in graph.states.values()}
            for state, found in graph.moves.items():
                for event, after in found.items():
                    self.moves.add((self.key(graph.states[state]), event, self.key(graph.states[after])))

    @staticmethod
    def key(state: _State) -> tuple[Any, ...]:
        return tuple(value for name, value in sorted(state.of.items()) if name not in ("codes", "posts"))

    def has_state(self, state: _State) -> bool:
        return self.states.get(self.key(state)) == state.of

    def has_move(self, state: _State, event: int, after: _State) -> bool:
        return (self.key(state), event, self.key(after)) in self.moves


# -- logs: policies, and real ones --

_Log = tuple[str, LastRank, list[ev.Event]]


def _logs(logs: Iterable[_Log], origin: str) -> _File:
    """Vectors that follow logs. What is refused is left out, as a job manager must: the log goes on without it."""
    file = _File(origin)
    by_setting: defaultdict[LastRank, list[_Log]] = defaultdict(list)
    for each in logs:
        by_setting[each[1]].append(each)
    for setting, some in by_setting.items():
        events = list(dict.fromkeys(map(_Same, (event for _, _, log in some for event in log))))
        numbers = {same: number for number, same in enumerate(events)}
        ranks = IdSet(range(max(same.of.ranks.max() for same in events if isinstance(same.of, ev.Alloc)) + 1))
        records, epilogs, prologs = _records((same.of for same in events), ranks)
        traces = [[numbers[_Same(event)] for event in log] for _, _, log in some]
        _, states = _ask_tlc(records, traces, ["Follow"], _bounds(len(ranks), epilogs, prologs, setting))
        at = {(state.of["trace"], state.of["step"]): state for state in states.values()}
        for number, (name, _, log) in enumerate(some, 1):
            steps: list[Any] = []
            for step, event in enumerate(log):
                code = at[number, step].code(traces[number - 1][step])
                steps.append([file.request(event), code or file.state(at[number, step + 1])])
            file.add(setting, file.state(at[number, 0]), steps, name=name)
    return file


@frozen(eq=False)
class _Same:
    """An event, the same as others of the same text (whose contexts may have more than the rules know)."""

    of: ev.Event

    def _text(self) -> str:
        ranks = self.of.ranks if isinstance(self.of, ev.Alloc) else ""
        return f"{self.of.name} {ranks} {_json(ev.to_context(self.of))}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._text() == other._text()

    def __hash__(self) -> int:
        return hash(self._text())


def _real_logs() -> Iterator[_Log]:
    folder = Path(__file__).resolve().parent.parent / "tests" / "data" / "eventlogs"
    paths = sorted(folder.glob("*.eventlog"))
    if not paths:
        raise FileNotFoundError(f"{folder}: no eventlogs: the vectors are made in a checkout")
    for path in paths:
        r_file = find_r(str(path))
        with open_log(str(path)) as stream:
            entries = list(read_log(path.name, stream, resources=read_r(r_file) if r_file else None))
        yield path.name, LastRank.KEEP, [entry.event for entry in entries]


def _began(ranks: str) -> list[ev.Event]:
    return [
        *(ev.Submit(), ev.Validate(), ev.Depend(), ev.Priority()),
        *(ev.Alloc(IdSet(ranks)), ev.Start(), ev.Finish()),
    ]


def _policies() -> Iterator[_Log]:
    """What other resource managers do, in these events."""
    done: list[ev.Event] = [ev.Free(), ev.Clean()]
    for setting in LastRank:
        yield (
            f"OpenPBS, release_nodes_on_stageout, {setting}",
            setting,
            [
                *_began("0-3"),
                ev.EpilogStart("stageout", IdSet("0")),
                ev.Release(ALL_RANKS, True),
                ev.PartialFree(IdSet("1-3")),
                ev.EpilogFinish("stageout"),
                *done,
            ],
        )
        last = [] if setting is LastRank.KEEP else [ev.PartialFree(IdSet("3"))]
        yield (
            f"Slurm, an epilog a node, {setting}",
            setting,
            [
                *_began("0-3"),
                ev.EpilogStart("epilog"),
                ev.Release(ALL_RANKS, True),
                *(
                    event
                    for rank in (2, 0, 1)
                    for event in (ev.Release(IdSet([rank]), False, "epilog"), ev.PartialFree(IdSet([rank])))
                ),
                ev.Release(IdSet("3"), False, "epilog"),
                *last,
                ev.EpilogFinish("epilog"),
                *done,
            ],
        )
        most = IdSet("1-3") if setting is LastRank.KEEP else IdSet("0-3")
        yield (
            f"Slurm, a burst buffer, {setting}",
            setting,
            [
                *_began("0-3"),
                ev.EpilogStart("stage-out", IdSet()),
                ev.Release(ALL_RANKS, True),
                ev.PartialFree(most),
                ev.EpilogFinish("stage-out"),
                *done,
            ],
        )


_POLICIES: Final = tuple(_policies())


# -- contexts that are not as RFC 21 says, and can be said in a line --

_MALFORMED: Final[list[tuple[str, dict[str, Any]]]] = [
    ("submit", {"userid": 1, "urgency": 16}),
    ("submit", {"userid": 1, "urgency": 16, "flags": 0, "version": 2}),
    ("priority", {}),
    ("priority", {"priority": "high"}),
    ("prolog-start", {}),
    ("prolog-finish", {"description": "a"}),
    ("prolog-finish", {"status": 0}),
    ("start", {"x": "1"}),
    ("finish", {}),
    ("finish", {"status": "zero"}),
    ("exception", {"type": "cancel"}),
    ("exception", {"severity": 0}),
    ("exception", {"type": "cancel", "severity": 8}),
    ("exception", {"type": "cancel", "severity": -1}),
    ("release", {"ranks": "0"}),
    ("release", {"final": False}),
    ("release", {"ranks": "0", "final": "maybe"}),
    ("release", {"ranks": "all", "final": True, "description": "a"}),
    ("epilog-start", {}),
    ("epilog-start", {"ranks": "0"}),
    ("epilog-finish", {"description": "a"}),
    ("epilog-finish", {"status": 0}),
    ("partial-free", {}),
    ("partial-free", {"ranks": ""}),
    ("partial-free", {"ranks": "all"}),
    ("free", {"ranks": "0", "final": False}),
    ("clean", {"x": "1"}),
    *(("release", {"ranks": text, "final": False}) for text in ("1-0", "0,0", "1,0", "00", "0-", "-1", ",0", "0 ")),
    *(("epilog-start", {"description": "z", "ranks": text}) for text in ("0-0", "0,", "[0", "4294967295", "x", "All")),
    *(("partial-free", {"ranks": text}) for text in ("1-1", "0-1-2", "0, 1", "01", "[]0")),
]


def _contexts() -> _File:
    """Malformed events, tried before the first event, in RUN, in CLEANUP and after the last; and forms of idsets."""
    wrong = [ev.make_event(name, context) for name, context in _MALFORMED]
    for event in wrong:
        if not isinstance(event, ev.Malformed) or not can_be_asked(event):
            raise ValueError(f"not malformed, or not to be said in a line: {event}")
    began = _began("0-3")
    epilogs = [ev.EpilogStart("a"), ev.Release(ALL_RANKS, True)]
    rest = [ev.EpilogFinish("a"), ev.Free(), ev.Clean()]
    forms = ["[1]", "[1-2]", "[]", "3"]
    bracketed = [ev.make_event("release", {"ranks": text, "final": False, "description": "a"}) for text in forms]
    strange = [
        ev.make_event("debug.x", {"description": "a\tb=%25\n"}),
        ev.make_event("epilog-start", {"description": "", "unknown": "key"}),
        ev.make_event("epilog-start", {"description": 'odd\t"name"=é%09\n', "ranks": "0"}),
        ev.make_event("epilog-finish", {"description": 'odd "name"=é', "status": 0}),
        ev.make_event("epilog-finish", {"description": 'odd\t"name"=é%09\n', "status": 0, "more": "x"}),
        ev.make_event("epilog-finish", {"description": "", "status": -1}),
    ]
    log = [*wrong, *began[:6], *wrong, *began[6:], *epilogs, *bracketed, *strange, *wrong, *rest, *wrong]
    return _logs([("contexts", LastRank.KEEP, log)], "contexts that RFC 21 does not allow, by hand; states: TLC")


def main() -> None:
    """Write them."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m partialrelease.make_vectors FOLDER")
    try:
        files = make_vectors(print)
        folder = Path(sys.argv[1])
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.json"):
            old.unlink()
        for name, data in files.items():
            (folder / name).write_bytes(data)
    except (TLCError, LogError, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
