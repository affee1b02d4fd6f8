"""``partialrelease trace-check``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import click
from attrs import define

from ..check import NotALogStartError
from ..job import LastRank
from ..tlc import TLCError
from ..trace_check import TooLongError, Trace, answer_json, answer_lines, batches, check_traces, traces
from ._logs import FILES, LAST_RANK, Log, R, given_files
from ._output import complain, count_of, ended_by_signals, print_json, progress, say, warn


@click.command("trace-check", short_help="Have TLC follow eventlogs through the TLA+ specification.")
@FILES
@R
@LAST_RANK
@click.option("--explain", "explained", is_flag=True, help="Say what TLC saw, also of logs that are accepted.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def trace_check(files: tuple[str, ...], r_file: str | None, last_rank: str, explained: bool, form: str) -> int:
    """Have TLC say whether eventlogs are behaviours of the TLA+ specification, and at which line one is not.

    FILE is what `check` reads, and begins with submit; jobs of a journal that began before it are left out. What
    `check` says is shown beside. Exit status: 0 all accepted, 1 not all, 2 bad input, or TLC cannot be run.
    """
    files = given_files(files, r_file)
    setting = LastRank(last_rank)
    totals = _Followed()

    def whole(advance: Callable[[int], object] | None) -> Iterator[Trace]:
        for file in files:
            log = Log(file, r_file, False, setting, advance)
            whole_ones = left_out = 0
            try:
                for trace in traces(log.name, log.entries(), setting):
                    if trace.whole:
                        whole_ones += 1
                        yield trace
                    else:
                        left_out += 1
            except NotALogStartError as error:
                log.fail(f"{log.name}:{error.entry.line}: {error}; trace-check needs all of it")
            except TooLongError as error:
                log.fail(f"{log.name}:{error.entry.line}: {error}")
            if left_out and not whole_ones:
                log.fail(f"{log.name}: all of its jobs began before it; trace-check needs one that begins with submit")
            elif left_out:
                warn(f"{log.name}: left out what began before the log: {count_of(left_out, 'job')}")
            totals.bad += log.bad

    try:
        with ended_by_signals(), progress(files) as advance:
            for batch in batches(whole(advance)):
                answers, behaviours = check_traces(batch, setting)
                totals.behaviours += behaviours
                totals.runs += 1
                for answer in answers:
                    totals.add(len(answer.trace.entries), answer.stopped is None, answer.agreed)
                    if form == "json":
                        print_json(answer_json(answer))
                    else:
                        for line in answer_lines(answer, explained):
                            say(line)
    except TLCError as error:
        complain(f"error: {error}")
        return 2
    if form == "text" and totals.jobs > 1:
        say(totals.line())
    return 2 if totals.bad else 1 if totals.stopped or totals.disagreed else 0


@define
class _Followed:
    """What `trace-check` has done."""

    jobs: int = 0
    events: int = 0
    stopped: int = 0
    disagreed: int = 0
    behaviours: int = 0
    runs: int = 0
    bad: int = 0

    def add(self, events: int, accepted: bool, agreed: bool) -> None:
        self.jobs += 1
        self.events += events
        self.stopped += not accepted
        self.disagreed += not agreed

    def line(self) -> str:
        found = f"{self.stopped} not accepted" if self.stopped else "all accepted"
        how = f"{count_of(self.behaviours, 'different behaviour')} in {count_of(self.runs, 'run')} of TLC"
        other = f"; check disagrees about {self.disagreed}" if self.disagreed else ""
        bad = f"; {count_of(self.bad, 'error')}: not all could be read" if self.bad else ""
        return f"{count_of(self.jobs, 'job')}, {self.events} events: {found} ({how}){other}{bad}"
