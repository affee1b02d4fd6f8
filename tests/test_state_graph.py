"""The spec and the code are the same machine: their complete state graphs are equal, both ways."""

import re
import tempfile

import pytest
from attrs import evolve
from click.testing import CliRunner

from partialrelease import Clean, IdSet, LastRank, job
from partialrelease.cli import cli
from partialrelease.state_graph import (
    difference_lines,
    differences,
    graph_of_python,
    graph_of_tlc,
    one_job,
)
from partialrelease.tlc import TLCError

pytestmark = pytest.mark.slow

FIGURES = {  # states, transitions
    ("keep", (2, 1, 1)): (374, 5367),
    ("defer", (2, 1, 1)): (404, 5768),
    ("with-last", (2, 1, 1)): (404, 5768),
    ("keep", (3, 2, 1)): (7340, 170353),
}


@pytest.mark.requirement("PR-04", "PR-22")
@pytest.mark.parametrize(("last_rank", "size"), FIGURES)
def test_state_graphs_are_equal(last_rank: str, size: tuple[int, int, int]) -> None:
    machine = one_job(*size, LastRank(last_rank))
    theirs = graph_of_tlc(machine)
    ours = graph_of_python(machine)
    print(f"{size}, {last_rank}: TLA+ {len(theirs.moves)} states, {theirs.transitions} transitions", end="; ")
    print(f"Python {len(ours.moves)} states, {ours.transitions} transitions")
    assert differences(ours, theirs) == []
    assert (ours.initial, ours.moves) == (theirs.initial, theirs.moves)
    assert (len(ours.moves), ours.transitions) == FIGURES[last_rank, size]


def test_a_guard_that_one_side_lacks_is_a_difference() -> None:
    """Python with last_rank=defer is the machine without one conjunct of partial-free's guard."""
    theirs = graph_of_tlc(one_job(1, 1, 0))
    found = differences(graph_of_python(one_job(1, 1, 0, LastRank.DEFER), within=theirs), theirs)
    assert {difference.event for difference in found} == {"PartialFree({0})"}
    assert len(found[0].path) == 4
    first, state, *others = difference_lines(theirs, found[0])
    assert first.startswith("after Submit, Alloc({0}), ")
    assert state.startswith("  state:  actions = ")
    assert 'phase = "CLEANUP"' in state
    assert others == ["  event:  PartialFree({0})", "  Python: held = {}, released = {0}", "  TLA+:   refuses"]


def test_another_effect_and_another_beginning_are_differences() -> None:
    machine = one_job(1, 0, 0)
    ours = graph_of_python(machine)
    wrong = evolve(machine, step=lambda job, event: (after := machine.step(job, event)) and evolve(after, closed=True))
    found = differences(graph_of_python(wrong, within=ours), ours)
    assert difference_lines(ours, found[0])[2:] == [
        "  event:  Submit",
        '  Python: closed = TRUE, phase = "NEW"',
        '  TLA+:   phase = "NEW"',
    ]
    late = graph_of_python(evolve(machine, first=evolve(machine.first, allocation=IdSet("0"))), within=ours)
    (only,) = differences(late, ours)
    assert "allocation = {0}" in difference_lines(ours, only)[1]
    with pytest.raises(ValueError, match="variables are"):
        differences(evolve(late, variables=()), ours)


def test_events_that_are_one_in_the_spec_must_do_the_same() -> None:
    machine = one_job(1, 0, 0)
    ours = graph_of_python(machine)
    events = {**machine.events, "Other": [*machine.events["Other"], *machine.events["Exception"]]}
    found = differences(graph_of_python(evolve(machine, events=events), within=ours), ours)
    assert {difference.event for difference in found} == {"Other"}
    assert '  Python: phase = "CLEANUP"' in difference_lines(ours, found[0])
    assert "  Python: changes nothing" in difference_lines(ours, found[0])


def test_the_command_says_the_figures_and_that_the_graphs_are_equal() -> None:
    done = CliRunner().invoke(cli, ["compare", "--ranks", "1", "--last-rank", "defer"], standalone_mode=False)
    assert (done.return_value, done.stderr) == (0, "")
    lines = re.sub(r"\d+\.\d s", "... s", done.stdout).splitlines()
    assert lines == [
        "ranks 1, epilogs 1, prologs 1, last rank defer: 32 events",
        "TLA+    102 states, 1296 transitions, ... s",
        "Python  102 states, 1296 transitions, ... s",
        "The state graphs are equal.",
    ]


def test_the_command_shows_the_first_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(job._RULES, Clean, (None, job._RULES[Clean][1]))
    done = CliRunner().invoke(cli, ["compare", "--ranks", "1", "--epilogs", "0"], standalone_mode=False)
    assert done.return_value == 1
    *_, after, state, event, ours, theirs, last = done.stdout.splitlines()
    assert (after, event) == ("after Submit", "  event:  Clean")
    assert state.endswith('phase = "NEW", released = {}')
    assert (ours, theirs) == ('  Python: phase = "INACTIVE"', "  TLA+:   refuses")
    assert re.fullmatch(r"THE STATE GRAPHS DIFFER\. This is the first; \d+ more outcomes differ\.", last)


def test_the_command_without_tlc_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TLA2TOOLS_JAR", "/no/such.jar")
    done = CliRunner().invoke(cli, ["compare"], standalone_mode=False)
    assert done.return_value == 2
    assert done.stderr == "error: TLA2TOOLS_JAR=/no/such.jar: no such file\n"


def test_without_room_to_work_in_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/no/such/folder")
    with pytest.raises(TLCError, match=r"no scratch folder to work in: .*/no/such/folder.*; set TMPDIR"):
        graph_of_tlc(one_job(1, 0, 0))


def test_what_tlc_cannot_do_is_an_error_of_one_line() -> None:
    with pytest.raises(TLCError) as error:
        graph_of_tlc(evolve(one_job(1, 0, 0), events={"NoSuchAction": []}))
    assert "NoSuchAction" in str(error.value)
    assert "\n" not in str(error.value)
