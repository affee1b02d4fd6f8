"""How many examples the stateful tests of the job need to find a mutant, when no other test helps.

    python tests/mutation_examples.py [--seeds N] [--limit N] [pattern ...]        (extra [mutation])

Of the mutants of job.py that tests/mutation.py has made, those of the functions that a pattern fits; if none is given,
of all that decide what the state is (the guards say much besides: words, ranks, holders). For each, the test's
machines are run one after the other with each of N seeds until one finds it. Printed are, by mutant, the median and the
most examples it took, and the machine; a mutant that none of them finds within the limit stands at the end.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path
from statistics import median

from mutation import MEMORY, STATUS, SURVIVED, WORK, described, results

PATTERNS = [
    *("Job.*", "*_effect", "_request_start", "_prologs", "_giver", "_loses", "decide", "settle", "evolved", "effect"),
    *("_all_ranks", "_union", "_within", "_keep", "_drop", "_end", "_take"),
]
Found = tuple[str, int] | None  # by which machine, with how many examples


def find(seed: int, limit: int) -> Found:
    """Run the machines until one fails."""
    from hypothesis import HealthCheck, Phase, core, settings
    from hypothesis.stateful import run_state_machine_as_test
    from test_stateful import CheckMachine, JobMachine, ManagerMachine

    core.global_force_seed = seed  # type: ignore[assignment]
    quick = settings(
        max_examples=limit,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        derandomize=False,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    count = 0  # of all machines together
    for machine in (JobMachine, CheckMachine, ManagerMachine):

        class Counted(machine):  # type: ignore[misc, valid-type]
            def __init__(self) -> None:
                nonlocal count
                count += 1
                super().__init__()

        try:
            run_state_machine_as_test(Counted, settings=quick)
        except Exception:
            return machine.__name__, count - 1  # once more, to show it
    return None


def found(mutant: str, seed: int, limit: int) -> Found:
    """In a process of its own: a mutant may take all memory, or never end."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.environ["MUTANT_UNDER_TEST"] = mutant
            os.close(reader)
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (300, 300))
            result = find(seed, limit)
            os.write(writer, f"{result[0]} {result[1]}".encode() if result else b"-")
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        said = stream.read()
    os.waitpid(child, 0)
    if not said:
        return "no end", 1
    machine, _, count = said.partition(" ")
    return (machine, int(count)) if count else None


def main() -> int:
    parser = argparse.ArgumentParser(description="Examples until a mutant of job.py is found; see the docstring.")
    parser.add_argument("patterns", nargs="*", default=PATTERNS, help="names of functions; * fits anything")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--limit", type=int, default=200, help="examples of each machine")
    parser.add_argument("--every", type=int, default=1, help="of the mutants, take every N-th only")
    options = parser.parse_args()
    equal = {name for name, code in results("job").items() if code is not None and STATUS.get(code) == SURVIVED}
    chosen = [
        (name, mutant)
        for name, mutant, wording in described("job", list(results("job")))
        if not wording
        and name not in equal
        and any(fnmatch(mutant.function, f"job.{each}") for each in options.patterns)
    ]
    chosen = chosen[:: options.every]
    if not chosen:
        parser.error("no such mutant: run tests/mutation.py first")

    os.chdir(WORK / "mutants")
    sys.path[:0] = [str(Path.cwd()), str(Path.cwd() / "tests")]
    os.environ["MUTANT_UNDER_TEST"] = ""
    import test_stateful  # noqa: F401  # once, for all children

    if found("", 0, 5) is not None:
        parser.error("the stateful tests fail without a mutant")
    by_median: Counter[float] = Counter()
    never = []
    for name, mutant in chosen:
        runs = [found(name, seed, options.limit) for seed in range(options.seeds)]
        hits = [each for each in runs if each is not None]
        counts = sorted(count for _, count in hits) + [3 * options.limit] * (len(runs) - len(hits))
        if not hits:
            never.append(mutant)
            continue
        middle = median(counts)
        by_median[middle] += 1
        print(f"{middle:>6g}  {counts[-1]:>6}  {hits[0][0]:<15}  {mutant.function}: {mutant.after}", flush=True)
    print("\nmedian of the examples: mutants")
    for middle, mutants in sorted(by_median.items()):
        print(f"{middle:>6g}: {mutants}")
    for mutant in never:
        print(f"\nnot found: {mutant}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
