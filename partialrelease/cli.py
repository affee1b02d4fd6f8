"""The command line: ``partialrelease check`` and ``partialrelease explain``.

Exit status: 0 fine, 1 violations found, 2 bad input or usage.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NoReturn

import click
import msgspec
from attrs import define
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from . import __version__
from .check import NotALogStartError, Report, begin_report, check_entries
from .eventlog import LogError, find_r, open_log, read_log, read_r
from .events import Entry
from .explain import HEADINGS, Row, conclusion, fate, make_row
from .idset import MAX_ID, IdSet
from .job import Job, LastRank, Phase
from .report import finding_lines, plain, report_json, report_line
from .resources import ResourceSet, ResourceSetError

__all__ = ["main"]

_MOST_ROWS = 1000  # that `explain` shows

_FILES = click.argument("files", nargs=-1, metavar="[FILE]...")
_R = click.option("--R", "r_file", metavar="FILE", help="The job's R (RFC 20). Default: NAME.R beside NAME.eventlog.")
_FRAGMENT = click.option(
    "--fragment", is_flag=True, help="The log does not begin with submit: check what can be checked."
)
_LAST_RANK = click.option(
    "--last-rank",
    type=click.Choice([setting.value for setting in LastRank]),
    default=LastRank.KEEP.value,
    show_default=True,
    help="May partial-free take the last held rank?",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="partialrelease")
def cli() -> None:
    """Early, partial release of a job's ranks: check and explain the eventlogs of Flux jobs."""


@cli.command()
@_FILES
@_R
@_FRAGMENT
@_LAST_RANK
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def check(files: tuple[str, ...], r_file: str | None, fragment: bool, last_rank: str, form: str) -> int:
    """Replay eventlogs and report every violation, such as a rank released while still referenced.

    FILE is an eventlog (JSON lines, or the text of `flux job eventlog`) or a job manager's journal; .gz, .xz and .zst
    are read as they are; - or nothing is standard input. Exit status: 0 fine, 1 violations, 2 bad input.
    """
    files = files or ("-",)
    if files.count("-") > 1:
        raise click.UsageError("standard input can be read only once: give - once")
    if r_file is not None and len(files) > 1:
        raise click.UsageError("--R is the R of one job: give it with one FILE")
    totals = _Totals()
    with _progress(files) as advance:
        for file in files:
            log = _Log(file, r_file, fragment, LastRank(last_rank), advance)
            for report in log.reports():
                totals.add(report)
                if form == "json":
                    _print(msgspec.json.encode(report_json(log.name, report)).decode() + "\n")
                else:
                    _show_report(log, report)
            totals.bad += log.bad
    if form == "text" and (totals.jobs > 1 or totals.fragments):
        _say(totals.line())
    return 2 if totals.bad else 1 if totals.violations else 0


@cli.command()
@click.argument("file", metavar="FILE")
@_R
@_FRAGMENT
@_LAST_RANK
@click.option("--job", type=int, metavar="ID", help="Which job of a journal.")
@click.option(
    "--rank", type=click.IntRange(0, MAX_ID), metavar="N", help="Only what concerns this rank: why is it not free?"
)
@click.option("--host", metavar="NAME", help="Only what concerns the ranks on this host.")
def explain(
    file: str,
    r_file: str | None,
    fragment: bool,
    last_rank: str,
    job: int | None,
    rank: int | None,
    host: str | None,
) -> int:
    """Show one job's log event by event: who references what, what may be released, and what holds the rest."""
    if rank is not None and host is not None:
        raise click.UsageError("give --rank or --host, not both")
    log = _Log(file, r_file, fragment, LastRank(last_rank))
    report, rows = log.follow(job)
    if report is None:
        return 2
    log.look_at_hosts(report)
    ranks = None if rank is None else IdSet([rank])
    if host is not None:
        if report.resources is None or report.resources.nodelist is None:
            log.fail(f"{log.name}: the job's hosts are not known: no R with a nodelist; give it with --R")
            return 2
        ranks = report.resources.ranks_of(host)
        if not ranks:
            log.fail(f"{log.name}: no rank of this job is on host {host!r}; its hosts are {report.resources.hosts()}")
            return 2
    _show_rows(report, rows, ranks)
    for line in _conclusions(report, rows, ranks):
        _say(line)
    return 2 if log.bad else 1 if report.findings else 0


class _Log:
    """One file, its R, and what was wrong with them. What was read before an error is reported all the same."""

    def __init__(
        self,
        file: str,
        r_file: str | None,
        fragment: bool,
        last_rank: LastRank,
        advance: Callable[[int], object] | None = None,
    ) -> None:
        self.file = file
        self.name = "<stdin>" if file == "-" else plain(file)
        self.bad = 0
        self._fragment = fragment
        self._begin = Job(last_rank)
        self._advance = advance
        self._r_file = r_file
        self._resources: ResourceSet | None = None

    def _entries(self) -> Iterator[Entry]:
        try:
            r_file = self._r_file or (None if self.file == "-" else find_r(self.file))
            self._resources = read_r(r_file) if r_file else None
            with open_log(self.file, self._advance) as stream:
                for entry in read_log(self.name, stream, resources=self._resources, warn=_warn):
                    if entry.job is not None and self._r_file is not None:
                        raise LogError(self.name, entry.line, "--R is the R of one job, and this is a journal of many")
                    yield entry
        except LogError as error:
            self.fail(str(error))

    def fail(self, message: str) -> None:
        _complain(f"error: {message}")
        self.bad += 1

    def reports(self) -> Iterator[Report]:
        entries = self._entries()
        try:
            first = next(entries, None)
            if first is not None:
                yield from check_entries(
                    itertools.chain((first,), entries),
                    last_rank=self._begin.last_rank,
                    fragment=self._fragment,
                    resources=self._resources,
                )
        except NotALogStartError as error:
            self._fail_start(error)

    def follow(self, wanted: int | None) -> tuple[Report | None, deque[Row]]:
        """One job's report, and a row an event. ``None``: there is nothing to show, and an error was said."""
        report: Report | None = None
        rows: deque[Row] = deque(maxlen=_MOST_ROWS)
        try:
            for entry in self._entries():
                if wanted is not None and entry.job != wanted:
                    continue
                if report is None:
                    report = begin_report(entry, self._begin, fragment=self._fragment, resources=self._resources)
                elif entry.job != report.job:
                    self.fail(f"{self.name}:{entry.line}: a journal of several jobs; say which with --job {entry.job}")
                    return None, rows
                found = len(report.findings)
                report.step(entry)
                rows.append(make_row(report, entry.timestamp, entry.event, found))
        except NotALogStartError as error:
            self._fail_start(error)
        if report is None and not self.bad:
            self.fail(f"{self.name}: no events of job {wanted} in it")
        return report, rows

    def look_at_hosts(self, report: Report) -> None:
        """Say it if R's nodelist is bad, and go on without."""
        if report.resources is None:
            return
        try:
            report.resources.hosts()
        except ResourceSetError as error:
            self.fail(f"{self.name}: job {report.job}: {error}")
            report.resources = ResourceSet(report.resources.ranks)

    def _fail_start(self, error: NotALogStartError) -> None:
        self.fail(f"{self.name}:{error.entry.line}: {error}; --fragment checks what can be checked of it")


@define
class _Totals:
    jobs: int = 0
    events: int = 0
    fragments: int = 0
    violations: int = 0
    violating: int = 0
    bad: int = 0

    def add(self, report: Report) -> None:
        self.jobs += 1
        self.events += report.events
        self.fragments += report.fragment is not None
        self.violations += len(report.findings)
        self.violating += bool(report.findings)

    def line(self) -> str:
        found = f"{self.violations} violations in {self.violating} jobs" if self.violations else "no violations"
        cut = f"; {self.fragments} of the jobs began before the log" if self.fragments else ""
        bad = f"; {self.bad} errors: not all could be read" if self.bad else ""
        return f"{self.jobs} job{'' if self.jobs == 1 else 's'}, {self.events} events: {found}{cut}{bad}"


def _say(line: str) -> None:
    """Print a line for people, in which a log may have any say."""
    _print(f"{plain(line)}\n")


def _print(text: str) -> None:
    """Print, buffered, as ``click.echo`` is not."""
    try:
        sys.stdout.write(text)
    except OSError as error:
        _cannot_print(error)


def _cannot_print(error: OSError) -> NoReturn:
    """End: nobody reads on (which is no error of ours), or the output has no room."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or else it would fail again at exit
    if isinstance(error, BrokenPipeError):
        sys.exit(141)
    _complain(f"error: standard output: {error.strerror}")
    sys.exit(2)


def _complain(message: str) -> None:
    with contextlib.suppress(OSError):
        click.echo(plain(message), err=True)


def _warn(message: str) -> None:
    _complain(f"warning: {message}")


def _show_report(log: _Log, report: Report) -> None:
    log.look_at_hosts(report)
    _say(report_line(log.name, report, incomplete=log.bad > 0 and report.state.phase is not Phase.INACTIVE))
    for finding in report.findings:
        for line in finding_lines(report, finding, log.name):
            _say(line)


def _show_rows(report: Report, rows: Iterable[Row], ranks: IdSet | None) -> None:
    table = Table()
    for heading in HEADINGS:
        table.add_column(heading, overflow="fold")
    before: Row | None = None
    for row in rows:
        if ranks is None or any(row.touches(before, rank) for rank in ranks):
            cells = (Text(cell) for cell in row.cells(report.began))
            table.add_row(*cells, style="red" if row.problem else None)
        before = row
    console = Console()
    if not console.width or not (console.is_terminal or "COLUMNS" in os.environ):
        console = Console(width=160)
    with console.capture() as capture:
        console.print(table)
    if report.events > _MOST_ROWS:
        _say(f"(the last {_MOST_ROWS} of {report.events} events)")
    try:
        sys.stdout.write(capture.get())
    except OSError as error:
        _cannot_print(error)


def _conclusions(report: Report, rows: Iterable[Row], ranks: IdSet | None) -> Iterator[str]:
    if ranks is None:
        yield from conclusion(report)
    else:
        for rank in ranks:
            yield from fate(report, rows, rank)


@contextlib.contextmanager
def _progress(files: tuple[str, ...]) -> Iterator[Callable[[int], object] | None]:
    """A progress bar on a terminal, nothing elsewhere."""
    console = Console(stderr=True)
    sizes = [os.path.getsize(file) for file in files if os.path.isfile(file)]
    if not console.is_terminal or len(sizes) < len(files):
        yield None
        return
    columns = (TextColumn("checking"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    # Output goes around the bar if it goes to the terminal too; elsewhere it must not be touched.
    around = sys.stdout.isatty()
    with Progress(*columns, console=console, transient=True, redirect_stdout=around) as progress:
        task = progress.add_task("checking", total=sum(sizes))
        yield lambda count: progress.advance(task, count)


def main() -> None:
    """The command's entry point."""
    if sys.stdout is None:
        _complain("error: standard output is closed")
        sys.exit(2)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # whatever a log says can be printed
    try:
        status = cli(standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except click.exceptions.Abort:
        sys.exit(130)
    except OSError as error:
        _cannot_print(error)
    sys.exit(status)
