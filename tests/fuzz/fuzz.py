"""Fuzz a reader, guided by coverage (Atheris, which is libFuzzer for Python): ``fuzz.py TARGET --seconds N``.

What is found on the way is kept in ``.fuzz/TARGET`` beside the README, and a run goes on from there and from
``corpus/TARGET``. An input that breaks a promise ends the run; its file is named. Needs the extra ``[fuzz]``.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import random
import sys
import zlib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
NAMES = sorted(folder.name for folder in (HERE / "corpus").iterdir())

# libFuzzer knows nothing of JSON, and what decodes it is not instrumented: so some changes are made by value.
VALUES: tuple[object, ...] = (
    None, True, False, 0, -1, 1, 0.0, 1e-9, 1e12, 1e300, math.inf, 61, 1 << 31, 1 << 63, (1 << 64) + 1, "", "0", "0-3",
    "1-2", "all", "0-4294967294", "4294967295", "3-1", "01", "[0-3,7]", "n[0-3]", "n[08-11]x,m",
    "n[0-999999999]", "vm,vm", "a b", "a=b", "\n", "\x1b[1m", "\u2028", "rank[0-3]/core0", "submit", "alloc",
    "release", "epilog-start", "partial-free", "free", "ENODATA", ">", "<", "rx", "tx", "sched.free", [], {},
    [[]], {"core": "0-1"}, {"a": {"b": []}}, {"": 1}, {"a=b c": 1},
)  # fmt: skip


def mutated(data: bytes, rng: random.Random) -> bytes | None:
    """The data with one JSON value in one of its lines, or in a copy of one, changed, if it is a line of JSON."""
    lines = data.split(b"\n")
    number = rng.randrange(len(lines))
    if rng.random() < 0.2:
        lines.insert(number, lines[number])
    try:
        whole: Any = [json.loads(lines[number])]
    except (ValueError, RecursionError):
        return None
    place, key = whole, 0
    while isinstance(value := place[key], dict | list) and value and rng.random() < 0.8:
        place, key = value, rng.choice(list(value) if isinstance(value, dict) else range(len(value)))
    match rng.randrange(4):
        case 0:
            del place[key]
        case 1 if isinstance(place, dict):
            place[rng.choice(["ranks", "final", "description", "R", "id", "free", "extra", ""])] = rng.choice(VALUES)
        case 2 if isinstance(place, list):
            place.insert(key, place[key])
        case _:
            place[key] = rng.choice(VALUES)
    lines[number] = b"".join(json.dumps(each, separators=(",", ":")).encode() for each in whole)
    return b"\n".join(lines).replace(b"Infinity", b"1e999")  # which is no JSON, and a number out of range


def main() -> None:
    parser = argparse.ArgumentParser(description="Fuzz a reader.")
    parser.add_argument("target", choices=NAMES)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--longest", type=int, default=2048, help="bytes of an input")
    asked, more = parser.parse_known_args()  # more: options of libFuzzer

    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["partialrelease"]):
        targets: Any = importlib.import_module("targets")
    target = targets.TARGETS[asked.target]

    def test_one(data: bytes) -> None:
        target.look(data)
        if zlib.crc32(data) % 500 == 0:  # not by chance: what is found is to be found again
            taken = targets.seconds(target, long := targets.lengthened(data))
            if taken > targets.SLOW:
                Path("slow").write_bytes(long)
                raise AssertionError(f"{taken:.1f} s for {len(long)} bytes, which are in the file slow")

    def mutate(data: bytes, longest: int, seed: int) -> bytes:
        rng = random.Random(seed)
        changed = mutated(data, rng) if rng.random() < 0.5 else None
        return changed if changed and len(changed) <= longest else atheris.Mutate(data, longest)

    kept = HERE.parent.parent / ".fuzz" / asked.target
    (kept / "inputs").mkdir(parents=True, exist_ok=True)
    atheris.Setup(
        [
            sys.argv[0],
            str(kept / "inputs"),
            str(HERE / "corpus" / asked.target),
            f"-dict={HERE / 'words.dict'}",
            f"-max_total_time={asked.seconds}",
            f"-max_len={asked.longest}",
            f"-artifact_prefix={kept}/",
            "-timeout=20",
            "-rss_limit_mb=1024",
            "-print_final_stats=1",
            *more,
        ],
        test_one,
        custom_mutator=mutate,
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
