"""The state diagram in tla/README.md is the one that the code draws."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from partialrelease import Free, job
from partialrelease.diagram import mermaid, renewed

README = Path(__file__).parent.parent / "tla" / "README.md"


def test_the_diagram_is_not_stale() -> None:
    text = README.read_text()
    assert renewed(text) == text, "run: python -m partialrelease.diagram tla/README.md"


def test_every_module_is_said_to_be_what_it_is() -> None:
    modules = {path.stem for path in README.parent.glob("*.tla")}
    said = re.findall(r"(?m)^\| (`.*?`) \|", README.read_text())
    assert set(re.findall(r"`(\w+)`", " ".join(said))) == modules


def test_another_rule_is_another_diagram(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(job._RULES, Free, (None, job._RULES[Free][1]))
    assert renewed(README.read_text()) != README.read_text()


def arrows() -> set[tuple[str, str, str]]:
    text = mermaid()
    names = dict(re.findall(r'(\w+) ?[(\[]"(.*)"[)\]]', text))
    found = re.findall(r'(\w+) -->\|"(.*)"\| (\w+)', text)
    return {
        (names[source].partition(" (")[0], label, names[end])
        for source, labels, end in found
        for label in labels.split(", ")
    }


def test_the_diagram_shows_how_a_job_goes() -> None:
    assert {
        ("-", "submit", "NEW"),
        ("before the allocation", "alloc", "start requested"),
        ("start requested", "start", "shells run"),
        ("shells run", "finish", "gate open"),
        ("shells run", "fatal exception", "gate closed"),
        ("gate open", "partial-free", "gate open"),
        ("gate open", "free", "freed, or lost"),
        ("freed, or lost", "clean", "INACTIVE"),
    } <= arrows()
    assert not [arrow for arrow in arrows() if arrow[0] == "INACTIVE"]


def test_the_command_renews_a_file(tmp_path: Path) -> None:
    def run(*args: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "partialrelease.diagram", *args]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stderr

    stale = tmp_path / "README.md"
    stale.write_text(README.read_text().replace("partial-free", "all-free"))
    assert run(str(stale)) == (0, "")
    assert stale.read_text() == README.read_text()
    stale.write_text("no marker")
    assert run(str(stale))[0] == 2
    assert stale.read_text() == "no marker"
    assert run()[0] == 2
    assert "No such file" in run(str(tmp_path / "none"))[1]
