"""Times two ways of doing the same in turns, and prints the table of all at the end."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from importlib.metadata import distributions
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final

import pytest

Work = Callable[[], Any]

_LONG_ENOUGH: Final = 0.03  # seconds; shorter work is repeated until a sample takes that long
_PACKAGES: Final = ("partialrelease", "pyroaring", "msgspec", "ClusterShell", "transitions", "python-statemachine")


class Bench:
    """The table. Adding a row that misses its target fails the test."""

    def __init__(self) -> None:
        self._rows = [("what", "ours", "theirs", "ratio", "wanted", "ok?")]

    def faster(self, what: str, ours: Work, theirs: Work, least: float | None = None, *, per: int = 1) -> None:
        """Ours is so many times as fast; ``least`` is wanted. The work is ``per`` events, the times are for one."""
        mine, other, ratio = _race(ours, theirs, pairs=11)
        wanted = "" if least is None else f">= {least:g}"
        self.add(what, _duration(mine / per), _duration(other / per), ratio, wanted, least is None or ratio >= least)

    def slower(self, what: str, ours: Work, theirs: Work, most: float | None, *, per: int = 1, pairs: int = 11) -> None:
        """Ours takes so many times as long; at most ``most`` is wanted."""
        mine, other, ratio = _race(ours, theirs, pairs)
        ratio = 1 / ratio
        wanted = "" if most is None else f"<= {most:g}"
        self.add(what, _duration(mine / per), _duration(other / per), ratio, wanted, most is None or ratio <= most)

    def add(self, what: str, ours: str, theirs: str, ratio: float | None, wanted: str, ok: bool) -> None:
        """A row of what was measured elsewhere."""
        shown = "" if ratio is None else f"{ratio:.3g}" if ratio < 1000 else f"{ratio:.0f}"
        self._rows.append((what, ours, theirs, shown, wanted, ("ok" if ok else "MISSED") if wanted else ""))
        if not ok:
            pytest.fail(f"MISSED: {what}: {shown or ours}, wanted {wanted}", pytrace=False)

    def lines(self) -> Iterator[str]:
        """The table's lines; none, if it has no rows."""
        first, *widths = (max(map(len, column)) for column in zip(*self._rows, strict=True))
        for what, *cells in self._rows if len(self._rows) > 1 else ():
            yield "  ".join([what.ljust(first), *map(str.rjust, cells, widths)]).rstrip()


def _race(ours: Work, theirs: Work, pairs: int) -> tuple[float, float, float]:
    """The medians of the times of both, in seconds, and of theirs/ours of the pairs that were timed in turn."""
    loops = _loops(ours), _loops(theirs)
    times = [(_time(ours, loops[0]), _time(theirs, loops[1])) for _ in range(pairs)]
    mine, other = zip(*times, strict=True)
    return median(mine), median(other), median(b / a for a, b in times)


def _loops(work: Work) -> int:
    loops = 1
    while _time(work, loops) * loops < _LONG_ENOUGH:
        loops *= 2
    return loops


def _time(work: Work, loops: int) -> float:
    """Without the garbage collector, as timeit does: what else pytest holds is not to be paid for by either side."""
    gc.collect()
    gc.disable()
    try:
        start = perf_counter()
        for _ in range(loops):
            work()
        return (perf_counter() - start) / loops
    finally:
        gc.enable()


def _duration(seconds: float) -> str:
    units = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))
    unit, size = next(((unit, size) for unit, size in units if seconds >= size), units[-1])
    return f"{seconds / size:.3g} {unit}"


_TABLE: Final = pytest.StashKey[Bench]()


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    named = (config.invocation_params.dir / argument.split("::")[0] for argument in config.args)
    return None if any(path.resolve().is_relative_to(Path(__file__).parent) for path in named) else True


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_TABLE] = Bench()


@pytest.fixture(scope="session")
def bench(pytestconfig: pytest.Config) -> Bench:
    return pytestconfig.stash[_TABLE]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if lines := list(config.stash[_TABLE].lines()):
        versions = [f"{found.name} {found.version}" for found in distributions() if found.name in _PACKAGES]
        terminalreporter.section("benchmarks")
        terminalreporter.write("\n".join([", ".join(versions), *lines, ""]))
        for skipped in terminalreporter.getreports("skipped"):
            terminalreporter.write_line(f"left out: {skipped.nodeid}: {skipped.longrepr[-1]}")
