"""The command line: ``partialrelease check``, ``explain``, ``model-check`` and ``compare``.

Exit status: 0 fine, 1 violations or differences found, 2 bad input or usage.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import io
import itertools
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, cast

import click
import msgspec
from attrs import define, field
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from . import __version__
from .check import NotALogStartError, Report, begin_report, check_entries
from .eventlog import LogError, find_r, open_log, read_log, read_r
from .events import Entry
from .explain import HEADINGS, Row, conclusion, fate, make_row
from .idset import MAX_ID, IdSet
from .instance import Settings
from .job import Job, LastRank, Phase
from .report import finding_lines, plain, report_json, report_line
from .resources import ResourceSet, ResourceSetError

if TYPE_CHECKING:
    from .model_check import Model
    from .state_graph import Machine

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
@click.option("--rank", type=click.IntRange(0, MAX_ID), metavar="N", help="Why is this rank not free?")
@click.option("--host", metavar="NAME", help="Why are the ranks on this host not free?")
def explain(
    file: str,
    r_file: str | None,
    fragment: bool,
    last_rank: str,
    job: int | None,
    rank: int | None,
    host: str | None,
) -> int:
    """Show one job's log event by event: who references what, what may be released, and what holds the rest.

    With --rank or --host, only what concerns these ranks; of a journal, the jobs that hold them, or the last that did.
    """
    if rank is not None and host is not None:
        raise click.UsageError("give --rank or --host, not both")
    log = _Log(file, r_file, fragment, LastRank(last_rank))
    asked = None if rank is None and host is None else _Asked(rank, host)
    stories = log.follow(job, asked)
    for story in stories:
        log.look_at_hosts(story.report)
        if len(stories) > 1 or (job is None and story.report.job is not None):
            _say(f"job {story.report.job}:")
        ranks = None if asked is None else asked.ranks(story.report)
        if host is not None and not ranks:
            hosts = story.report.resources and story.report.resources.hosts()
            log.fail(f"{log.name}: no rank is on host {host!r}; hosts: {hosts or 'not known, give R with --R'}")
            continue
        _show_rows(story, ranks)
        lines = [conclusion(story.report)]
        if ranks is not None:
            lines = [fate(story.report, story.rows, rank) for rank in ranks]
        for line in itertools.chain.from_iterable(lines):
            _say(line)
    return 2 if log.bad else 1 if any(story.report.findings for story in stories) else 0


@cli.command(name="model-check")
@click.argument("names", nargs=-1, metavar="[MODEL]...")
@click.option("--list", "listing", is_flag=True, help="List the models, and what must be found in each.")
@click.option("--counterexample", is_flag=True, help="Print the counterexamples of the rejected designs too.")
@click.option("--states", is_flag=True, help="Print counterexamples as states of TLA+ too.")
@click.option("--eventlogs", metavar="DIR", help="Write counterexamples to DIR/MODEL.eventlog, for `explain`.")
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Models at a time. Default: one a CPU, at most 4.")
@click.option("--workers", type=click.IntRange(1), default=1, metavar="N", help="TLC's workers a model. Default: 1.")
@click.option("--distributed", is_flag=True, help="TLC's distributed mode: the workers are processes.")
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", help="Of the distributed mode. Default: 127.0.0.1.")
def model_check(
    names: tuple[str, ...],
    listing: bool,
    counterexample: bool,
    states: bool,
    eventlogs: str | None,
    jobs: int | None,
    workers: int,
    distributed: bool,
    host: str,
) -> int:
    """Have TLC check the models of the TLA+ specification: all, or those named. Needs the extra [tla].

    Each rejected design must be found to violate its rule, and each other model must hold. Exit status: 0 all as
    expected, 1 a difference, 2 no answer.

    --distributed is for a model too large for one machine. It cannot check temporal properties (EarlyRelease,
    EventuallyClean), and does not say which rule is violated. With the --host of another interface, workers on other
    machines can join. Its ports ask for no password, and are open on all interfaces whatever the --host: use it where
    the network can be trusted.
    """
    from . import model_check as mc  # here, so that the other commands start no later
    from . import tlc

    models = {model.name: model for model in mc.find_models(tlc.spec_folder())}
    for name in names:
        if name not in models:
            raise click.UsageError(f"there is no model {name!r}. There are: {', '.join(models)}")
    chosen = [models[name] for name in dict.fromkeys(names or models)]
    if listing:
        _show_table(("model", "expected", "what"), ([model.name, model.expectation, model.about] for model in chosen))
        return 0
    if distributed and not names:
        raise click.UsageError("--distributed is for single large models: name them")
    run: Callable[..., tlc.Result] = functools.partial(tlc.run, workers=workers)
    if distributed:
        on_ready = None if host == "127.0.0.1" else _invite
        run = functools.partial(tlc.run_distributed, workers=workers, host=host, on_ready=on_ready)
    outcomes: dict[str, mc.Outcome] = {}
    error: tlc.TLCError | None = None
    with _ended_by_signals(), _model_progress(len(chosen)) as shown:
        try:
            for outcome in mc.check_models(chosen, at_a_time=1 if distributed else jobs, run=run, on_progress=shown):
                outcomes[outcome.model.name] = outcome
                shown.end(outcome.model)
        except tlc.TLCError as why:
            error = why
    checked = [outcomes[model.name] for model in chosen if model.name in outcomes]
    _show_table(mc.HEADINGS, (outcome.row() for outcome in checked), [not each.as_expected for each in checked])
    for outcome in checked:
        if outcome.result.trace and (counterexample or eventlogs or states or not outcome.as_expected):
            try:
                for line in outcome.story(eventlogs, states):
                    _say(line)
            except OSError as why:
                raise click.ClickException(f"{eventlogs}: cannot be written: {why.strerror}") from None
    if error:
        _complain(f"error: {error}")
        return 2
    different = [outcome for outcome in checked if not outcome.as_expected]
    for outcome in different:
        _say(f"NOT AS EXPECTED: {outcome.model.name} {outcome.finding}; expected: {outcome.model.expectation}")
    _say(f"{len(checked)} models: {f'{len(different)} not' if different else 'all'} as expected")
    return 1 if different else 0


@cli.command()
@click.option("--ranks", type=click.IntRange(1, 8), default=2, show_default=True, help="Ranks that there are.")
@click.option("--epilogs", type=click.IntRange(0, 8), default=1, show_default=True, help="Epilogs that there are.")
@click.option("--prologs", type=click.IntRange(0, 8), help="Prologs that there are, of one job.  [default: 1]")
@_LAST_RANK
@click.option("--jobs", type=click.IntRange(1, 8), help="An instance with so many jobs, of so many epilogs each.")
@click.option(
    "--release-after",
    type=click.Choice(["unset", "now", "timer"]),
    default="unset",
    show_default=True,
    help="Of an instance: when ranks whose housekeeping is done go to the scheduler.",
)
@click.option("--no-partial-ok", is_flag=True, help="Of an instance: its scheduler's hello has no partial-ok.")
@click.option("--fluxion", is_flag=True, help="Of an instance: its scheduler forgets a job with its last rank.")
def compare(
    ranks: int,
    epilogs: int,
    prologs: int | None,
    last_rank: str,
    jobs: int | None,
    release_after: str,
    no_partial_ok: bool,
    fluxion: bool,
) -> int:
    """Compare the TLA+ specification of a job with the code: their complete state graphs, both ways.

    With --jobs, the specification of an instance: jobs, their housekeeping, and the scheduler.

    What the one allows the other must allow, with the same outcome, and what the one refuses the other must refuse; in
    every state, of every event that there is within the bounds. Needs the extra [tla]. Exit status: 0 they are equal, 1
    they differ, 2 no answer.
    """
    from . import state_graph as sg  # here, so that the other commands start no later
    from .tlc import TLCError

    if jobs is None:
        if release_after != "unset" or no_partial_ok or fluxion:
            raise click.UsageError("--release-after, --no-partial-ok and --fluxion are of an instance: say --jobs too")
        machine, bounds = _one_job(ranks, epilogs, 1 if prologs is None else prologs, LastRank(last_rank))
    else:
        if prologs is not None:
            raise click.UsageError("--prologs is of one job: an instance has none")
        seconds = {"unset": None, "now": 0, "timer": 60.0}[release_after]
        has_off_node = frozenset(range(1, jobs + 1))
        settings = Settings(LastRank(last_rank), seconds, not no_partial_ok, fluxion, has_off_node)
        machine, bounds = _several_jobs(settings, jobs, ranks, epilogs)
    _say(f"{bounds}: {len(machine.events)} events")
    with _ended_by_signals(), _status() as status:
        try:
            theirs = sg.graph_of_tlc(machine, on_progress=lambda _, found: status(f"TLA+: {found:,} states"))
        except TLCError as error:
            _complain(f"error: {error}")
            return 2
        ours = sg.graph_of_python(
            machine,
            within=theirs,
            on_progress=lambda found: status(f"Python: {found:,} of {len(theirs.moves):,} states"),
        )
    for name, graph in (("TLA+", theirs), ("Python", ours)):
        _say(f"{name:6}  {len(graph.moves)} states, {graph.transitions} transitions, {graph.seconds:.1f} s")
    found = sg.differences(ours, theirs)
    if not found:
        _say("The state graphs are equal.")
        return 0
    for line in sg.difference_lines(theirs, found[0]):
        _say(line)
    more = f" This is the first; {len(found) - 1} more outcomes differ." if found[1:] else ""
    _say(f"THE STATE GRAPHS DIFFER.{more}")
    return 1


def _one_job(ranks: int, epilogs: int, prologs: int, last_rank: LastRank) -> tuple[Machine[Any, Any], str]:
    from .state_graph import one_job

    bounds = f"ranks {ranks}, epilogs {epilogs}, prologs {prologs}, last rank {last_rank}"
    return one_job(ranks, epilogs, prologs, last_rank), bounds


def _several_jobs(settings: Settings, jobs: int, ranks: int, epilogs: int) -> tuple[Machine[Any, Any], str]:
    from .instance_graph import several_jobs

    bounds = f"jobs {jobs}, ranks {ranks}, epilogs {epilogs}, last rank {settings.last_rank}"
    return several_jobs(settings, jobs, ranks, epilogs), bounds


@contextlib.contextmanager
def _status() -> Iterator[Callable[[str], object]]:
    """A line on a terminal that says what is going on, nothing elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda line: None
        return
    with console.status("TLA+") as status:
        yield status.update


def _invite(command: str) -> None:
    _complain(f"a worker on another machine: {command}")


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Leave in order, so that child processes end too, when told to terminate or when the terminal is gone."""

    def leave(number: int, _: object) -> NoReturn:
        sys.exit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Models:
    """The models that are being checked, on a terminal."""

    def __init__(self, progress: Progress | None, count: int) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}
        self._all = progress.add_task(f"{count} models", total=count) if progress else TaskID(0)

    def __call__(self, model: Model, generated: int, distinct: int) -> None:
        if self._progress:
            if model.name not in self._tasks:
                self._tasks[model.name] = self._progress.add_task(model.name, total=None)
            said = f"{model.name}: {distinct:,} states" if distinct else model.name
            self._progress.update(self._tasks[model.name], description=said)

    def end(self, model: Model) -> None:
        if self._progress:
            self._progress.remove_task(self._tasks[model.name])
            self._progress.advance(self._all)


@contextlib.contextmanager
def _model_progress(count: int) -> Iterator[_Models]:
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Models(None, count)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, redirect_stdout=sys.stdout.isatty()) as progress:
        yield _Models(progress, count)


@define
class _Story:
    """One job, with a row an event: the last of them, if they are many."""

    report: Report
    rows: deque[Row] = field(factory=lambda: deque(maxlen=_MOST_ROWS))


@define
class _Asked:
    """What was asked about: a rank, or the ranks on a host."""

    rank: int | None
    host: str | None

    def ranks(self, report: Report) -> IdSet:
        """The ranks in question, as this job sees it."""
        if self.rank is not None:
            return IdSet([self.rank])
        with contextlib.suppress(ResourceSetError):
            if report.resources is not None and self.host is not None:
                return report.resources.ranks_of(self.host)
        return IdSet()


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

    def follow(self, wanted: int | None, asked: _Asked | None) -> list[_Story]:
        """The stories to tell: of the wanted job; or of those that hold what was asked about, or of the last that did.

        If there are none, an error has been said.
        """
        stories: dict[int | None, _Story] = {}
        last: _Story | None = None
        try:
            for entry in self._entries():
                if wanted is not None and entry.job != wanted:
                    continue
                story = stories.get(entry.job)
                if story is None:
                    if asked is None and stories:
                        message = "a journal of several jobs; say which with --job, or ask for a --rank or a --host"
                        self.fail(f"{self.name}:{entry.line}: {message}")
                        return []
                    report = begin_report(entry, self._begin, fragment=self._fragment, resources=self._resources)
                    story = stories[entry.job] = _Story(report)
                found = len(story.report.findings)
                story.report.step(entry)
                story.rows.append(make_row(story.report, entry.timestamp, entry.event, found))
                if asked and wanted is None and entry.job is not None and story.report.state.phase is Phase.INACTIVE:
                    del stories[entry.job]
                    if asked.ranks(story.report) & story.report.state.allocation:
                        last = story
        except NotALogStartError as error:
            self._fail_start(error)
        told = list(stories.values())
        if asked is not None and (last is not None or len(told) > 1):
            holding = [story for story in told if asked.ranks(story.report) & story.report.state.held]
            told = holding or ([last] if last is not None else [])
        if not told and not self.bad:
            what = f"no events of job {wanted}" if wanted is not None else "no job with what was asked for"
            self.fail(f"{self.name}: {what} in it")
        return told

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


def _show_rows(story: _Story, ranks: IdSet | None) -> None:
    rows: list[tuple[str, ...]] = []
    problems: list[bool] = []
    before: Row | None = None
    for row in story.rows:
        if ranks is None or any(row.touches(before, rank) for rank in ranks):
            rows.append(row.cells(story.report.began))
            problems.append(bool(row.problem))
        before = row
    if story.report.events > _MOST_ROWS:
        _say(f"(the last {_MOST_ROWS} of {story.report.events} events)")
    _show_table(HEADINGS, rows, problems)


def _show_table(headings: Iterable[str], rows: Iterable[Iterable[str]], problems: Iterable[bool] = ()) -> None:
    """Print a table; red, on a terminal, the rows that are problems."""
    table = Table()
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for cells, problem in itertools.zip_longest(rows, problems, fillvalue=False):
        table.add_row(*map(Text, cast(Iterable[str], cells)), style="red" if problem else None)
    console = Console()
    if not console.width or not (console.is_terminal or "COLUMNS" in os.environ):
        console = Console(width=160)
    with console.capture() as capture:
        console.print(table)
    _print(capture.get())


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
    gc.disable()  # what is checked has no cycles, and most of it is short-lived: collecting took a tenth of the time
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
        _complain("interrupted")
        sys.exit(130)
    except OSError as error:
        _cannot_print(error)
    sys.exit(status)
