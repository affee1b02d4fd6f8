"""``partialrelease conform``."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from ..conform import (
    CannotStartError,
    Difference,
    Driver,
    Process,
    Result,
    check_generated,
    check_vectors,
    explained,
)
from ..eventlog import write_log
from ..events import Alloc, Entry, Submit
from ..job import LastRank
from ..protocol import answer_line, request_line
from ..vectors import INDEX, Vector, VectorsError, coverage, read_vectors, vectors_folder
from ._output import complain, count_of, ended_by_signals, print_json, say, show_table, status_line


@click.command(short_help="Test an implementation against the specification.")
@click.option("--examples", type=click.IntRange(0), default=500, show_default=True, help="Sequences to make up.")
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed makes up other ones.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, 3600, min_open=True),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="An answer that takes longer is none. The first after a start may take 10 more.",
)
@click.option("--no-vectors", is_flag=True, help="Only what is made up.")
@click.option("--save", metavar="NAME", help="Write what differs to NAME.eventlog and NAME.R, which `explain` reads.")
@click.option("--vectors-info", is_flag=True, help="Say what the vectors are, and ask nobody.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.argument("command", nargs=-1, metavar="-- COMMAND...", type=click.UNPROCESSED)
def conform(
    examples: int,
    seed: int,
    timeout: float,
    no_vectors: bool,
    save: str | None,
    vectors_info: bool,
    form: str,
    command: tuple[str, ...],
) -> int:
    """Find out whether an implementation, in any language, does what the specification says.

    COMMAND answers on its standard output what it is asked on its standard input, a line each: spec/protocol.md says
    how. It is asked the conformance vectors, which come from the TLA+ specification, and then sequences that Hypothesis
    makes up (that needs the extra [hypothesis]). The smallest sequence is shown on which it differs; to crash or to
    hang is to differ. Exit status: 0 it conforms, 1 it differs, 2 it cannot be started, or usage.
    """
    gc.enable()  # what Hypothesis makes has cycles
    try:
        vectors = [] if no_vectors else read_vectors()
    except VectorsError as error:
        complain(f"error: {error}")
        return 2
    if vectors_info:
        return _say_vectors(vectors, form)
    if not command:
        raise click.UsageError("which implementation? COMMAND is missing, after --")
    if no_vectors and not examples:
        raise click.UsageError("--no-vectors --examples 0 asks nothing")
    if examples and not _have_hypothesis():
        return 2
    with ended_by_signals(), status_line() as status, Process(command, timeout) as process:
        driver = Driver(process)
        results: dict[str, tuple[Result, int]] = {}
        try:
            if vectors:
                found = check_vectors(driver, vectors, lambda done: status(f"vectors: {done} of {len(vectors)}"))
                results["vectors"] = found, driver.asked
            if examples and not any(found.different for found, _ in results.values()):
                before = driver.asked
                found = check_generated(driver, examples, seed, lambda done: status(f"made up: {done} of {examples}"))
                results["made up"] = found, driver.asked - before
        except CannotStartError as error:
            complain(f"error: {error}")
            return 2
    difference = next((found.smallest for found, _ in results.values() if found.smallest), None)
    saved = save if difference is not None and save is not None and _save(difference, save) else None
    if form == "json":
        print_json(_json(results, driver, difference))
    else:
        for line in _lines(results, driver, difference, saved):
            say(line)
    if difference is None:
        return 0
    return 1 if saved == save else 2  # else it could not be saved


def _have_hypothesis() -> bool:
    try:
        import_module("partialrelease.strategies")
    except ImportError as error:
        complain(f"error: {error}, or ask only the vectors: --examples 0")
        return False
    return True


# -- what was found --


def _lines(
    results: dict[str, tuple[Result, int]], driver: Driver, difference: Difference | None, saved: str | None
) -> Iterator[str]:
    for name, (found, asked) in results.items():
        how = f"{found.different} DIFFERENT" if found.different else "all as expected"
        yield f"{name}: {count_of(found.sequences, 'sequence')}, {count_of(asked, 'request')}: {how}"
    if driver.not_compared:
        yield f"not compared, since it is not in the answers: {', '.join(driver.not_compared)}"
    if difference is None:
        yield "CONFORMS."
        return
    events = len(difference.events)
    yield f"DIFFERS: it {difference.why}"
    yield f"The smallest sequence found ({count_of(events, 'event')}, last_rank={difference.last_rank}):"
    for number, (request, _) in enumerate(difference.exchanges):
        yield f"  {number or '':>3}  {_words(request_line(request))}"
    yield f"       expected: {_words(answer_line(difference.exchanges[-1][1]))}"
    if reason := explained(difference):
        yield f"                 {reason}"
    yield f"       answered: {_words(difference.answered) or '(nothing)'}"
    if difference.noise.strip():
        yield "       on standard error, last:"
        for line in difference.noise.strip().splitlines()[-5:]:
            yield f"         {line}"
    if saved is not None and isinstance(next(iter(difference.events), None), Submit):
        setting = "" if difference.last_rank is LastRank.KEEP else f"--last-rank {difference.last_rank} "
        yield f"`partialrelease explain {setting}{saved}.eventlog` shows what should be."
    elif saved is not None:  # which explain would take for a fragment
        yield f"{saved}.eventlog has its events."


def _words(line: str) -> str:
    return line.removeprefix("event\t").replace("\t", "  ")


def _json(results: dict[str, tuple[Result, int]], driver: Driver, difference: Difference | None) -> dict[str, Any]:
    return {
        "conforms": difference is None,
        **{
            name.replace(" ", "_"): {"sequences": found.sequences, "requests": asked, "different": found.different}
            for name, (found, asked) in results.items()
        },
        "not_compared": driver.not_compared,
        "difference": difference
        and {
            "why": difference.why,
            "requests": [request_line(request) for request, _ in difference.exchanges],
            "expected": answer_line(difference.exchanges[-1][1]),
            "answered": difference.answered or None,
            "standard_error": difference.noise,
        },
    }


def _save(difference: Difference, name: str) -> bool:
    """Write the sequence as a log, and its R."""
    events = difference.events
    try:
        with Path(f"{name}.eventlog").open("w", encoding="utf-8") as stream:
            write_log((Entry(n, None, float(n), event) for n, event in enumerate(events, 1)), stream)
        allocs = [event.ranks for event in events if isinstance(event, Alloc) and event.ranks]
        if allocs:
            lite = f'[{{"rank":"{allocs[0]}","children":{{"core":"0"}}}}]'
            r = f'{{"version":1,"execution":{{"R_lite":{lite},"starttime":0,"expiration":0}}}}\n'
            Path(f"{name}.R").write_text(r, encoding="utf-8")
    except OSError as error:
        complain(f"error: {error.filename}: {error.strerror}")
        return False
    return True


# -- the vectors --


def _say_vectors(vectors: list[Vector], form: str) -> int:
    seen = coverage(vectors)
    folder = vectors_folder()
    index = json.loads((folder / INDEX).read_text())
    size = sum(path.stat().st_size for path in folder.glob("*.json"))
    names = sorted({*seen.taken, *(name for name, _ in seen.refused)})
    refusals = {name: {code: n for (of, code), n in sorted(seen.refused.items()) if of == name} for name in names}
    if form == "json":
        print_json(
            {
                "version": index["version"],
                "files": index["files"],
                "vectors": seen.vectors,
                "requests": seen.exchanges,
                "bytes": size,
                "states": seen.states,
                "events": {name: {"happens": seen.taken.get(name, 0), "refused": refusals[name]} for name in names},
                "posts": seen.posts,
            }
        )
        return 0
    say(
        f"{folder / INDEX}: version {index['version']}, {seen.vectors} vectors, {seen.exchanges} requests, {size} bytes"
    )
    rows = [
        (name, str(seen.taken.get(name, 0)), ", ".join(f"{code} {n}" for code, n in refusals[name].items()))
        for name in names
    ]
    show_table(("event", "happens", "refused"), rows)
    for name, entry in index["files"].items():
        line = f"{name}: {entry['vectors']} vectors"
        if "states" in entry:
            line += f": in TLC's state graph {entry['states']} states, and {entry['steps']} steps that change something"
        say(line)
    say(f"posted next: {', '.join(f'{name} {n}' for name, n in sorted(seen.posts.items()))}")
    return 0
