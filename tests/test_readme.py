"""Every command and snippet of the README does what the README shows."""

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import partialrelease

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)
INSTALLS = "python3 -m venv .venv && .venv/bin/pip install -q "


def _commands() -> list[tuple[str, str]]:
    """The commands, without what installs the package, and the output shown below each."""
    shown = [text.removeprefix("$ ").partition("\n") for language, text in BLOCKS if language == "console"]
    return [(re.sub(rf"^{INSTALLS}'\.\[cli\]' && \.venv/bin/", "", command), output) for command, _, output in shown]


COMMANDS = [(command, output) for command, output in _commands() if not command.startswith(INSTALLS)]


def test_the_readme_has_the_two_commands() -> None:
    installing = [command for command, _ in _commands() if command.startswith(INSTALLS)]
    assert installing == [f"{INSTALLS}-e '.[test]' && .venv/bin/python -m pytest"]
    assert README.count(f"{INSTALLS}'.[cli]' && .venv/bin/partialrelease") == 1


@pytest.mark.parametrize(("command", "output"), COMMANDS)
def test_commands_print_what_the_readme_shows(command: str, output: str) -> None:
    bin_ = Path(sys.executable).parent
    env = {**os.environ, "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "160"}
    done = subprocess.run(
        command, shell=True, check=False, capture_output=True, text=True, cwd=ROOT, env=env, timeout=60
    )
    assert (_untimed(done.stdout), done.stderr) == (_untimed(output), "")


def _untimed(output: str) -> str:
    """Without the seconds that models took, which are the last in their row."""
    return re.sub(r" \d+\.\d +│\n", " - │\n", output)


def test_the_library_in_ten_lines_prints_what_the_readme_shows(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = [text for language, text in BLOCKS if language == "python"]
    (output,) = [text for language, text in BLOCKS if language == "text"]
    exec(code, {})
    assert capsys.readouterr().out == output
    assert len([line for line in code.splitlines() if line and "import" not in line]) <= 10


def test_every_public_name_can_be_had_from_the_package() -> None:
    for name in (
        "check",
        "eventlog",
        "events",
        "fragment",
        "hostlist",
        "idset",
        "instance",
        "invariants",
        "job",
        "resources",
    ):
        module = import_module(f"partialrelease.{name}")
        for public in module.__all__:
            assert getattr(partialrelease, public) is getattr(module, public)
