"""The comparison of the spec and the code can fail: each guard, taken out of either, is reported as a difference."""

import __future__

import ast
import inspect
import re
from collections.abc import Iterator
from types import CodeType, FunctionType

import pytest
from attrs import evolve

from partialrelease import LastRank, Malformed, job
from partialrelease.state_graph import Graph, State, differences, graph_of_python, graph_of_tlc, one_job
from partialrelease.tlc import spec_folder

pytestmark = pytest.mark.slow  # TLC runs

MACHINE = one_job(2, 1, 1)
SMALLER = one_job(1, 1, 1, LastRank.DEFER)  # shows most of it, quicker, and that only `keep` keeps a rank

# -- the spec: PartialRelease, but without the conjunct whose number `mutant' is --

DEFINITION = re.compile(r"(?m)^((\w+)(?:\(.*\))? ==)[ \n]((?:.*\S.*\n)+)")
CONJUNCT = re.compile(r"(?m)^  /\\ (.*\n(?:   .*\n)*)")
CHANGES = re.compile(r"'|\bUNCHANGED\b")


def mutants_of_the_spec() -> tuple[str, list[str]]:
    """A module in which each guard conjunct of each action is left out where ``mutant`` is its number, from 1 on.

    Returns the module, and the conjuncts. A conjunct is a guard unless it says what changes, itself or by what it uses.
    """
    spec = (spec_folder() / "PartialRelease.tla").read_text()
    bodies = {name: body for _, name, body in DEFINITION.findall(spec)}
    changing = {name for name, body in bodies.items() if CHANGES.search(body)}
    used = {name: set(re.findall(r"\w+", body)) for name, body in bodies.items()}
    actions = (used["Reported"] | used["Decided"] | used["Next"]) & changing
    guards: list[str] = []

    def mutate(definition: re.Match[str]) -> str:
        head, name, body = definition.groups()
        if name not in actions or name in ("Reported", "Decided", "Next"):
            return definition[0]
        lines = [head]
        for conjunct in (found.strip() for found in CONJUNCT.findall(body)):
            if CHANGES.search(conjunct) or changing & set(re.findall(r"\w+", conjunct)):
                lines.append(f"  /\\ {conjunct}")
            else:
                guards.append(f"{name}: {conjunct}")
                # TLC would stop where a function is applied outside of its domain, for want of a guard before.
                total = re.sub(r"(\w+)\[(\w+)\]", r"(IF \2 \\in DOMAIN \1 THEN \1[\2] ELSE {})", conjunct)
                lines.append(f"  /\\ mutant = {len(guards)} \\/ ({total})")
        return "\n".join([*lines, "  /\\ UNCHANGED mutant", ""])

    module = DEFINITION.sub(mutate, spec)
    for old, new in {
        "MODULE PartialRelease": "MODULE Mutants",
        "CONSTANTS Ranks": "EXTENDS Naturals\nCONSTANTS Ranks",
        "VARIABLES phase": "VARIABLES mutant, phase",
        "Init ==": f"Init ==\n  /\\ mutant \\in 0..{len(guards)}",
    }.items():
        assert module.count(old) == 1
        module = module.replace(old, new)
    return module, guards


def split(graph: Graph) -> dict[int, Graph]:
    """The graph of each mutant."""
    index = graph.variables.index("mutant")

    def cut(state: State | None) -> State | None:
        return state and (*state[:index], *state[index + 1 :])

    graphs: dict[int, Graph] = {}
    variables = tuple(name for name in graph.variables if name != "mutant")
    for state in graph.initial:
        graphs[int(str(state[index]))] = Graph(variables, frozenset({cut(state) or ()}), {}, 0)
    for state, moves in graph.moves.items():
        cuts = {event: frozenset(map(cut, outcomes)) for event, outcomes in moves.items()}
        graphs[int(str(state[index]))].moves[cut(state) or ()] = cuts
    return graphs


@pytest.mark.requirement("PR-22")
def test_each_guard_conjunct_of_the_spec_matters() -> None:
    module, guards = mutants_of_the_spec()
    ours = graph_of_python(MACHINE)
    found = {
        mutant: differences(ours, theirs)
        for mutant, theirs in split(
            graph_of_tlc(evolve(MACHINE, module="Mutants"), modules={"Mutants": module})
        ).items()
    }
    print(f"{len(guards)} guard conjuncts of the spec; without it, so many outcomes differ:")
    for mutant, guard in enumerate(guards, 1):
        print(f"  {len(found[mutant]):4}  {guard}")
    assert len(guards) >= 43
    assert len(found) == len(guards) + 1
    assert found.pop(0) == []  # nothing left out
    assert [guards[mutant - 1] for mutant, differ in found.items() if not differ] == []
    for mutant, differ in found.items():
        action = guards[mutant - 1].partition(":")[0]
        assert all(re.match(r"\w+", difference.event)[0] == action for difference in differ)  # type: ignore[index]


# -- the code: each guard, and each condition and each answer in the guards --

GUARDS = [
    function
    for function in vars(job).values()
    if isinstance(function, FunctionType)
    and function.__module__ == job.__name__
    and function.__annotations__.get("return") in ("_Found", "ProtocolViolation | None")
]

# What changes nothing that the spec could say: what was changed, and why.
INVISIBLE = {
    "_malformed_guard: no Violation(Code.MalformedContext)": "the spec has no malformed events",
    "_release_guard: event.final = False": "a final release of an epilog is a malformed event",
    "_release_guard: no Violation(Code.MalformedContext)": "a final release of an epilog is a malformed event",
    "_release_guard: job.phase is not CLEANUP = False": "only a violation can make an epilog active outside CLEANUP",
    "_release_guard: no _outside_cleanup(event)": "only a violation can make an epilog active outside CLEANUP",
    "_finish_guard: too_early = False": "only a violation can make the final release come before finish",
    "_must_hold: ranks is ALL_RANKS = False": "only quicker than what follows it",
    "_must_hold: ranks == ALL_RANKS = False": "here the set of all ranks is always the very same",
    "_must_be_releasable: users = True": "only quicker than what follows it",
    "guard: found = False": "which code is given before submit",
    "guard: found.code in _BEFORE_WRONG_PHASE = True": "which code is given before submit",
    "guard: found.code in _BEFORE_WRONG_PHASE = False": "which code is given before submit",
    "_start_guard: job.exec is not REQUESTED = True": "which of two messages is given",
    "_start_guard: job.exec is not REQUESTED = False": "which of two messages is given",
    "_start_guard: job.exec is not IDLE = True": "which of two messages is given",
    "_start_guard: job.exec is not IDLE = False": "which of two messages is given",
}


def operands(condition: ast.expr) -> Iterator[ast.expr]:
    if isinstance(condition, ast.BoolOp):
        for part in condition.values:
            yield from operands(part)
    else:
        yield condition


def places(tree: ast.AST) -> Iterator[tuple[ast.expr, bool | None]]:
    """What to change, and to what: answers to None, what is asked to True and to False."""
    for node in ast.walk(tree):
        asked: list[ast.expr] = []
        if isinstance(node, ast.If) and any(isinstance(part, ast.Return) for part in ast.walk(node)):
            asked = [*operands(node.test)]
        elif isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
            yield node.value, None
            if isinstance(node.value, ast.IfExp):
                asked = [*operands(node.value.test)]
        for condition in asked:
            yield condition, False
            if not isinstance(condition, ast.NamedExpr):  # its name would have no value
                yield condition, True


class Change(ast.NodeTransformer):
    def __init__(self, place: ast.expr, to: bool | None) -> None:
        self.place, self.to = place, to

    def visit(self, node: ast.AST) -> ast.AST:
        return ast.copy_location(ast.Constant(self.to), node) if node is self.place else self.generic_visit(node)


def mutants_of_the_code() -> Iterator[tuple[str, FunctionType, CodeType]]:
    """What was changed, in which function, and its code then."""
    for function in GUARDS:
        source = inspect.getsource(function)
        for number in range(len([*places(ast.parse(source))])):
            tree = ast.parse(source)
            place, to = [*places(tree)][number]
            text = ast.unparse(place)
            if to is None and isinstance(place, ast.Call):
                text = f"{ast.unparse(place.func)}({ast.unparse(place.args[0])})"
            name = f"{function.__name__}: {f'no {text}' if to is None else f'{text} = {to}'}"
            Change(place, to).visit(tree)
            code = compile(tree, name, "exec", flags=__future__.annotations.compiler_flag, dont_inherit=True)
            yield name, function, next(const for const in code.co_consts if isinstance(const, CodeType))


@pytest.fixture(scope="module")
def keep() -> Graph:
    return graph_of_tlc(MACHINE)


@pytest.fixture(scope="module")
def smaller() -> Graph:
    return graph_of_tlc(SMALLER)


GUARDED = [event for event, (guard, _) in job._RULES.items() if guard and event is not Malformed]  # the spec has none


@pytest.mark.requirement("PR-22")
@pytest.mark.parametrize("event", GUARDED, ids=lambda event: event.__name__)
def test_each_guard_of_the_code_matters(event: type, keep: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(job._RULES, event, (None, job._RULES[event][1]))
    found = differences(graph_of_python(MACHINE, within=keep), keep)
    print(f"{event.__name__} without its guard: {len(found)} outcomes differ")
    assert found


def test_each_condition_and_each_answer_in_the_guards_of_the_code_matters(
    keep: Graph, smaller: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    invisible = set()
    print("changed in the code, and so many outcomes differ:")
    for name, function, code in mutants_of_the_code():
        with monkeypatch.context() as patch:
            patch.setattr(function, "__code__", code)
            try:
                found = differences(graph_of_python(SMALLER, within=smaller), smaller)
                found = found or differences(graph_of_python(MACHINE, within=keep), keep)
                print(f"  {len(found):4}  {name}")
                if not found:
                    invisible.add(name)
            except (AttributeError, TypeError) as error:  # what the condition kept from happening
                print(f"     -  {name}: {error}")
    assert invisible == INVISIBLE.keys()
