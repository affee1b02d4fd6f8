"""The conformance vectors: this package passes them, they exercise every rule, and TLC makes the same ones again."""

import json
import shutil
import zipfile
from pathlib import Path

import pytest
from attrs import evolve
from hatchling.build import build_wheel

from partialrelease import Alloc, Code, Event, Job, Malformed, Unknown, apply, job
from partialrelease.conform import LONGEST_REQUEST
from partialrelease.implementation import Implementation
from partialrelease.job import guard
from partialrelease.make_vectors import make_vectors
from partialrelease.protocol import Queued, request_line
from partialrelease.state_graph import events_of_one_job
from partialrelease.vectors import INDEX, Vector, VectorsError, coverage, read_vectors, vectors_folder

ROOT = Path(__file__).parent.parent
VECTORS = read_vectors()


def first_failure(vectors: list[Vector]) -> str | None:
    """The first vector, and its first request, that this package answers otherwise; ``None`` if there is none."""
    here = Implementation()
    for vector in vectors:
        for number, (request, expected) in enumerate(vector.exchanges):
            if (answer := here.answer(request)) != expected:
                return f"{vector.name}, {number}: {request}: {answer}, not {expected}"
    return None


@pytest.mark.requirement("PR-04", "PR-17", "PR-18", "PR-21", "PR-22", "PR-23", "PR-26")
def test_the_package_passes_every_vector() -> None:
    assert first_failure(VECTORS) is None


# What each event can be refused for. (AfterInactive and WrongPhase, before submit, all of them can.)
REFUSALS = {
    "submit": {Code.MalformedContext, Code.WrongPhase},
    "priority": {Code.MalformedContext},
    "alloc": {Code.MalformedContext, Code.WrongPhase},
    "prolog-start": {Code.MalformedContext, Code.DuplicateHolder, Code.WrongPhase},
    "prolog-finish": {Code.MalformedContext, Code.UnknownHolder},
    "start": {Code.MalformedContext, Code.WrongPhase},
    "finish": {Code.MalformedContext, Code.WrongPhase},
    "exception": {Code.MalformedContext},
    "scheduler-restart": {Code.ResourcesLost},
    "release": {Code.MalformedContext, Code.WrongPhase, Code.NotHeld},
    "release of an epilog": {Code.MalformedContext, Code.UnknownHolder, Code.NotHeld},
    "epilog-start": {Code.MalformedContext, Code.DuplicateHolder, Code.WrongPhase, Code.NotHeld},
    "epilog-finish": {Code.MalformedContext, Code.UnknownHolder},
    "partial-free": {
        Code.MalformedContext,
        Code.WrongPhase,
        Code.ReleasedWhileReferenced,
        Code.GateClosed,
        Code.NotHeld,
        Code.LastRankFreed,
    },
    "free": {
        Code.MalformedContext,
        Code.WrongPhase,
        Code.ReleasedWhileReferenced,
        Code.FreeWhileActive,
        Code.GateClosed,
    },
    "clean": {Code.MalformedContext, Code.WrongPhase, Code.CleanWhileHeld},
}


def test_every_event_happens_and_is_refused_for_all_that_it_can_be() -> None:
    seen = coverage(VECTORS)
    assert {kind.name for kind in job._RULES if kind not in (Unknown, Malformed)} <= seen.taken.keys()
    missing = {(name, code) for name, codes in REFUSALS.items() for code in codes} - seen.refused.keys()
    assert missing == set()
    assert {name for name, code in seen.refused if code == Code.AfterInactive} >= seen.taken.keys() - {"(queued)"}
    assert seen.posts.keys() == {"free", "clean", "partial-free", "nothing"}
    settings = {vector.exchanges[0][0] for vector in VECTORS}
    assert len(settings) == 3


@pytest.mark.parametrize(
    ("name", "bounds", "states", "steps"),
    [("keep-2-1-1", (2, ["a"], ["a"]), 374, 2174), ("keep-1-2-2", (1, ["a", "b"], ["a", "b"]), 390, 2916)],
)
def test_of_the_state_graph_every_step_is_taken_and_every_refusal_tried(
    name: str, bounds: tuple[int, list[str], list[str]], states: int, steps: int
) -> None:
    """The graph is the code's here; that it is TLC's, too, is another test (test_state_graph)."""
    same = {event: kind for kind, events in events_of_one_job(*bounds).items() for event in events}
    taken: set[tuple[Job, str]] = set()
    refused: set[tuple[Job, str]] = set()
    for vector in VECTORS:
        if vector.name.startswith(name):
            here = Implementation()
            for request, expected in vector.exchanges:
                if isinstance(request, Event):
                    event = request.meant if isinstance(request, Malformed) and request.meant else request
                    (refused if expected.code else taken).add((_in_order(here.job), same[event]))
                here.answer(request)
    todo = [Job()]
    found = {Job()}
    changing = 0
    for job_ in todo:
        for kind, events in events_of_one_job(*bounds).items():
            if guard(job_, events[0]) is not None:
                assert (job_, kind) in refused, f"{kind} is not refused in {job_}"
                continue
            after = _in_order(apply(job_, events[0]))
            changing += after != job_
            assert (job_, kind) in taken, f"{kind} does not happen in {job_}"
            if after not in found:
                found.add(after)
                todo.append(after)
    assert (len(found), changing) == (states, steps)
    index = json.loads((vectors_folder() / INDEX).read_text())["files"][f"{name}.json"]
    assert (index["states"], index["steps"]) == (states, steps)


def _in_order(job_: Job) -> Job:
    """The order of actions is no matter."""
    return evolve(job_, actions=tuple(sorted(job_.actions, key=lambda action: (action.kind, action.description))))


def test_the_vectors_are_as_the_protocol_says() -> None:
    for vector in VECTORS:
        for number, (request, answer) in enumerate(vector.exchanges, 1):
            assert len(request_line(request).encode()) < LONGEST_REQUEST
            assert answer.code != Code.ResourcesLost or number == len(vector.exchanges)
            assert not (isinstance(request, Alloc) and request.ranks and request.ranks.max() > 62)


def test_what_is_queued_matters_in_the_vectors() -> None:
    waiting = {
        (answer.post is None)
        for vector in VECTORS
        for request, answer in vector.exchanges
        if request == Queued(("memo",))
    }
    assert waiting == {True, False}


GUARDS = [kind for kind, (guard, _) in job._RULES.items() if guard is not None]
EFFECTS = [kind for kind, (_, effect) in job._RULES.items() if effect not in (job._unchanged, job._malformed_effect)]


@pytest.mark.parametrize("kind", GUARDS)
def test_without_an_events_guard_a_vector_fails(kind: type[Event], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(job._RULES, kind, (None, job._RULES[kind][1]))
    assert first_failure(VECTORS) is not None


@pytest.mark.parametrize("kind", EFFECTS)
def test_without_an_events_effect_a_vector_fails(kind: type[Event], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(job._RULES, kind, (job._RULES[kind][0], job._unchanged))
    assert first_failure(VECTORS) is not None


@pytest.mark.slow
def test_tlc_makes_the_same_vectors_again() -> None:
    made = make_vectors()
    assert made.keys() == {path.name for path in vectors_folder().iterdir()}
    for name, data in made.items():
        assert data == (vectors_folder() / name).read_bytes(), f"{name}: python -m partialrelease.make_vectors"


# -- the files --


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    return Path(shutil.copytree(vectors_folder(), tmp_path / "vectors"))


def test_the_vectors_are_small() -> None:
    assert sum(path.stat().st_size for path in vectors_folder().iterdir()) < 700_000


def test_a_file_that_was_changed_is_refused(copied: Path) -> None:
    with (copied / "policies.json").open("a") as file:
        file.write(" ")
    with pytest.raises(VectorsError, match=r"policies\.json: not the file that index\.json has the checksum of"):
        read_vectors(copied)


@pytest.mark.parametrize(
    ("index", "why"),
    [
        ('{"format": 2, "files": {}}', "format 2: only format 1 is known"),
        ('{"format": 1}', "not vectors: KeyError"),
        ('{"format": 1, "files": []}', "not vectors: AttributeError"),
        ("{", "not vectors: JSONDecodeError"),
        ('{"format": 1, "files": {"none.json": {}}}', r"none\.json: No such file"),
    ],
)
def test_what_is_no_index_is_refused(index: str, why: str, copied: Path) -> None:
    (copied / INDEX).write_text(index)
    with pytest.raises(VectorsError, match=why):
        read_vectors(copied)


def test_the_index_names_what_there_is() -> None:
    index = json.loads((vectors_folder() / INDEX).read_text())
    for name, entry in index["files"].items():
        assert entry["bytes"] == (vectors_folder() / name).stat().st_size
    assert {*index["files"], INDEX} == {path.name for path in vectors_folder().iterdir()}


def test_the_wheel_has_the_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    with zipfile.ZipFile(tmp_path / build_wheel(str(tmp_path))) as wheel:
        names = {
            name.rpartition("/")[2] for name in wheel.namelist() if name.startswith("partialrelease/spec/vectors/")
        }
    assert names == {path.name for path in vectors_folder().iterdir()}
