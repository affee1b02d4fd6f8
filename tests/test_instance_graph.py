"""The spec of the instance and the code are the same machine: their complete state graphs are equal, both ways."""

import pytest
from attrs import evolve
from click.testing import CliRunner

from partialrelease import LastRank, Settings
from partialrelease import instance as instances
from partialrelease.cli import cli
from partialrelease.instance_graph import several_jobs
from partialrelease.state_graph import differences, graph_of_python, graph_of_tlc

pytestmark = pytest.mark.slow  # TLC runs

KEEP, DEFER, WITH_LAST = LastRank
BOTH = frozenset({1, 2})
SETTINGS = [  # settings, ranks, states, transitions; of two jobs with an epilog each
    (Settings(KEEP, 0, fluxion=True, has_off_node=BOTH), 2, 8258, 75684),
    (Settings(KEEP, None, has_off_node=BOTH), 1, 696, 5636),
    (Settings(DEFER, 60.0, has_off_node=frozenset({1})), 1, 1640, 14348),
    (Settings(DEFER, 0, fluxion=True, has_off_node=BOTH), 1, 1672, 13960),
    (Settings(WITH_LAST, 60.0), 1, 1120, 9552),
    (Settings(DEFER, 0, partial_ok=False, has_off_node=BOTH), 1, 696, 5636),
]


@pytest.mark.requirement("PR-31", "PR-34", "PR-37", "PR-43")
@pytest.mark.parametrize(("settings", "ranks", "states", "transitions"), SETTINGS)
def test_state_graphs_are_equal(settings: Settings, ranks: int, states: int, transitions: int) -> None:
    machine = several_jobs(settings, ranks=ranks)
    ours = graph_of_python(machine)
    theirs = graph_of_tlc(machine)
    assert (ours.initial, ours.moves) == (theirs.initial, theirs.moves)
    assert (len(ours.moves), ours.transitions) == (states, transitions)


def test_another_scheduler_is_a_difference() -> None:
    """Python's scheduler forgets no job, and TLA+'s does."""
    forgetful = several_jobs(Settings(DEFER, 0, fluxion=True, has_off_node=BOTH), ranks=1)
    other = evolve(forgetful, first=instances.Instance(Settings(DEFER, 0, has_off_node=BOTH)))
    theirs = graph_of_tlc(forgetful)
    found = differences(graph_of_python(other, within=theirs), theirs)
    assert found
    assert {difference.event.partition("(")[0] for difference in found} <= {"Free", "Complete", "Reload", "Restart"}


def test_another_hello_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python calls free at a reload what was handed over, and TLA+ what was freed."""
    machine = several_jobs(Settings(DEFER, 0), ranks=1)
    theirs = graph_of_tlc(machine)
    monkeypatch.setattr(instances, "free_in_hello", lambda member: member.job.released)
    found = differences(graph_of_python(machine, within=theirs), theirs)
    assert found
    assert {difference.event for difference in found} == {"Reload"}


def test_compare_compares_an_instance() -> None:
    done = CliRunner().invoke(cli, ["compare", "--jobs", "1", "--ranks", "1", "--release-after", "timer"])
    assert done.exit_code == 0, done.output
    assert "jobs 1, ranks 1, epilogs 1, last rank keep, release after timer: 22 events" in done.output
    assert "The state graphs are equal." in done.output


def test_compare_says_all_that_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TLA2TOOLS_JAR", "/nowhere")
    done = CliRunner().invoke(cli, ["compare", "--jobs", "1", "--no-partial-ok", "--fluxion"])
    assert "release after unset, no partial-ok, Fluxion: 32 events" in done.output


@pytest.mark.parametrize("options", [["--fluxion"], ["--jobs", "2", "--prologs", "1"], ["--release-after", "now"]])
def test_what_does_not_go_together_is_refused(options: list[str]) -> None:
    done = CliRunner().invoke(cli, ["compare", *options])
    assert done.exit_code == 2
    assert "an instance" in done.output
