"""``check`` on journals of up to a million events: its time against bare decoding and against jq, and its memory."""

from __future__ import annotations

import shutil
import subprocess
import sys
import types
from collections import deque
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from partialrelease import check_entries, read_log

from .conftest import Bench

_RECORDED: Final = Path(__file__).parent.parent / "data" / "journal-1024-ranks.ndjson"
_MILLION: Final = 1_000_000
_MANY: Final = "check a million events"
_PAIRS: Final = 5

# A process in between, which is small: a child's ru_maxrss begins at what its parent had when it forked.
_PEAK: Final = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""

_NUMBERS: Final = [(key, int | None, None) for key in ("userid", "urgency", "flags", "version", "priority", "status")]
_TEXTS: Final = [(key, str | None, None) for key in ("description", "ranks")]
_SPAN: Final = [("starttime", float), ("expiration", float), ("nslots", int), ("nodelist", list[str])]
_HEAD: Final = [("id", int), ("timestamp", float), ("name", str)]


def entry_type(**settings: Any) -> Any:
    """An entry, and all that the journal has in it, in msgspec's types."""
    struct: Any = partial(msgspec.defstruct, **settings)
    sched = struct("Sched", [("resource_summary", str)])
    others = [("annotations", struct("Annotations", [("sched", sched)]) | None, None), ("final", bool | None, None)]
    context = struct("Context", [*_NUMBERS, *_TEXTS, *others])
    ranks: Any = struct("Ranks", [("rank", str), ("children", struct("Children", [("core", str)]))])
    execution = struct("Execution", [("R_lite", types.GenericAlias(list, ranks)), *_SPAN])
    r = struct("R", [("version", int), ("execution", execution)])
    return struct("Entry", [*_HEAD, ("context", context | None, None), ("R", r | None, None)])


@pytest.fixture(scope="session")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """A function that writes a journal of so many events: the recorded one again and again, with new job ids."""
    lines = [line.split(b",", 1) for line in _RECORDED.read_bytes().splitlines(keepends=True)]
    recorded = [(int(id_.removeprefix(b'{"id":')), rest) for id_, rest in lines]

    @cache
    def write(events: int) -> Path:
        path = tmp_path_factory.mktemp("journal") / f"{events}.ndjson"
        with path.open("wb") as stream:
            for first in range(0, events, len(recorded)):
                part = recorded[: events - first]
                stream.writelines(b'{"id":%d,%b' % (id_ + first * 10**9, rest) for id_, rest in part)
        return path

    return write


def decode(path: Path, entry: Any) -> None:
    with path.open("rb") as stream:
        deque(map(msgspec.json.Decoder(entry).decode, stream), maxlen=0)


def check(path: Path) -> None:
    deque(check_entries(read_log(str(path))), maxlen=0)


def run(*command: str) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


def command(path: Path) -> list[str]:
    return [sys.executable, "-m", "partialrelease", "check", "--format", "json", str(path)]


def test_check_against_decoding(bench: Bench, journal: Callable[[int], Path]) -> None:
    path = journal(_MILLION)
    theirs = partial(decode, path, entry_type())
    bench.slower(f"{_MANY}, msgspec's decoding", partial(check, path), theirs, 8, pairs=_PAIRS)


@pytest.mark.parametrize("settings", [{}, {"gc": False}], ids=str)
def test_the_command_against_decoding(bench: Bench, journal: Callable[[int], Path], settings: dict[str, bool]) -> None:
    path = journal(_MILLION)
    theirs = partial(decode, path, entry_type(**settings))
    what = f"{_MANY}: the command, msgspec's decoding {settings or ''}"
    bench.slower(what, partial(run, *command(path)), theirs, None, pairs=_PAIRS)


def test_check_against_jq(bench: Bench, journal: Callable[[int], Path]) -> None:
    jq = shutil.which("jq") or pytest.skip("jq is not installed")
    path = journal(_MILLION)
    theirs = partial(run, jq, "-c", 'select(.name=="free")', str(path))
    bench.slower(f"{_MANY}: the command, jq", partial(run, *command(path)), theirs, 1, pairs=_PAIRS)


def peak(path: Path) -> float:
    """The most memory that checking the file takes, in MB."""
    process = subprocess.run([sys.executable, "-c", _PEAK, *command(path)], capture_output=True, check=True)
    return int(process.stdout) / 1000  # it is said in kB (on Linux)


def test_memory(bench: Bench, journal: Callable[[int], Path]) -> None:
    most, less = peak(journal(_MILLION)), peak(journal(_MILLION // 10))
    ratio = most / less
    ours, theirs = f"{most:.1f} MB", f"{less:.1f} MB"
    bench.add("peak memory of check: 1,000,000 events", ours, "", None, "< 150 MB", most < 150)
    bench.add("peak memory of check: 1,000,000 events, 100,000", ours, theirs, ratio, "<= 1.2", ratio <= 1.2)
