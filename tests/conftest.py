"""How long the tests look: profiles, chosen by ``--hypothesis-profile`` (``ci``, if not said).

``dev``: seconds a file; leaves out the tests marked ``slow`` (most of these run TLC). ``ci``: minutes, everything.
Both take the same examples each time: a red run is the change's doing. ``deep``: other examples each time, as many
as the environment variable ``EXAMPLES`` says; what it found before, and what came nearest to its targets, it keeps in
``.hypothesis`` and goes on from.
"""

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path

import exercised
import pytest
from hypothesis import HealthCheck, settings

from partialrelease.__main__ import main

BUSY = (HealthCheck.too_slow,)  # a busy machine is no finding
settings.register_profile("dev", deadline=None, derandomize=True, suppress_health_check=BUSY, max_examples=15)
settings.register_profile("ci", deadline=None, derandomize=True, suppress_health_check=BUSY, max_examples=100)
settings.register_profile(
    "deep",
    deadline=None,
    suppress_health_check=BUSY,
    max_examples=int(os.environ.get("EXAMPLES", "10000")),
    print_blob=True,
)
settings.load_profile("ci")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--hypothesis-profile") == "dev":
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What the stateful tests have exercised: a line, and with ``-v`` the table."""
    if exercised.EXERCISED:
        terminalreporter.section("what the stateful tests have exercised")
        if terminalreporter.verbosity > 0:
            terminalreporter.write_line(exercised.table())
        terminalreporter.write_line(exercised.summary())


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int | str, str, str]]:
    """Runs the command in this process; returns its exit status, standard output and standard error."""

    def runs(*args: str | Path, stdin: bytes = b"") -> tuple[int | str, str, str]:
        monkeypatch.setattr(sys, "argv", ["partialrelease", *map(str, args)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return end.value.code or 0, out, err

    return runs
