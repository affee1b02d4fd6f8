"""``partialrelease check``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import click
from attrs import define

from ..check import Report
from ..eventlog import LogError, open_log
from ..job import LastRank, Phase
from ..report import finding_lines, plain, report_json, report_line, sched_json, sched_line, sched_lines
from ..resources import ResourceSetError
from ..sched_check import LogsBeside, SchedChecker, SchedJob
from ..sched_trace import read_trace
from ._logs import FILES, FRAGMENT, LAST_RANK, Log, R, given_files
from ._output import complain, count_of, print_json, progress, say, warn


@click.command(short_help="Report every violation in eventlogs and scheduler traces.")
@FILES
@R
@FRAGMENT
@LAST_RANK
@click.option(
    "--sched-trace",
    "trace_file",
    metavar="FILE",
    help="Check what `flux module trace --full sched-simple` printed; alone, or beside the logs of its jobs.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def check(
    files: tuple[str, ...], r_file: str | None, fragment: bool, last_rank: str, trace_file: str | None, form: str
) -> int:
    """Replay eventlogs and report every violation, such as a rank released while still referenced.

    FILE is an eventlog (JSON lines, or the text of `flux job eventlog`) or a job manager's journal; .gz, .xz and .zst
    are read as they are; - or nothing is standard input. Exit status: 0 fine, 1 violations, 2 bad input.
    """
    traces = () if trace_file is None else (trace_file,)
    if files or not traces:
        files = given_files(files, r_file)
    elif r_file is not None or fragment:
        raise click.UsageError("--R and --fragment are of eventlogs: give FILE too")
    if (files + traces).count("-") > 1:
        raise click.UsageError("standard input can be read only once: give - once")
    totals = _Totals()
    trace: _Trace | None = None
    with progress(files + traces) as advance:
        if trace_file is not None:
            trace = _Trace(trace_file, LastRank(last_rank), form, advance)
            trace.read(show=not files)
        for file in files:
            log = Log(file, r_file, fragment, LastRank(last_rank), advance)
            if trace is not None:
                log.beside = trace.beside.begin(log.name)
            for report in log.reports():
                totals.add(report)
                if form == "json":
                    print_json(report_json(log.name, report))
                else:
                    _show_report(log, report)
            if log.beside is not None:
                for uncompared in log.beside.finish():
                    warn(uncompared)
            totals.bad += log.bad
    if form == "text" and (totals.jobs > 1 or totals.fragments):
        say(totals.line())
    if trace is not None:
        trace.conclude()
        totals.bad += trace.bad
        totals.violations += trace.violations
    return 2 if totals.bad else 1 if totals.violations else 0


class _Trace:
    """What was traced of a scheduler. What was read before an error is reported all the same."""

    def __init__(
        self, file: str, last_rank: LastRank, form: str, advance: Callable[[int], object] | None = None
    ) -> None:
        self.name = "<stdin>" if file == "-" else plain(file)
        self.bad = 0
        self.violations = 0
        self._file = file
        self._form = form
        self._advance = advance
        self._checker = SchedChecker(last_rank)
        self.beside = LogsBeside(self._checker, {})
        self._jobs = 0
        self._violating = 0
        self._others = 0

    def read(self, *, show: bool) -> None:
        """Read the trace. ``show`` its jobs as they end; or else keep them, to be compared with logs."""
        jobs: dict[int, SchedJob] = {}
        for job in self._checked():
            if show:
                self._show(job)
            else:
                jobs[job.job] = job
        self.beside = LogsBeside(self._checker, jobs)

    def _checked(self) -> Iterator[SchedJob]:
        try:
            with open_log(self._file, self._advance) as stream:
                reader = read_trace(self.name, stream, warn=warn)
                for message in reader:
                    self._others = reader.others
                    yield from self._checker.step(message)
                self._others = reader.others
        except LogError as error:
            complain(f"error: {error}")
            self.bad += 1
        yield from self._checker.finish()

    def conclude(self) -> None:
        """Show the jobs that were not shown yet, and sum up."""
        for number in sorted(self.beside.jobs):
            self._show(self.beside.jobs[number])
        checker = self._checker
        if self._form == "json":
            counts = {"messages": checker.messages, "others": self._others, "hellos": checker.hellos}
            violations = {"violations": self.violations, "violating": self._violating}
            print_json({"source": self.name, "jobs": self._jobs, **counts, **violations})
        elif checker.messages or not self.bad:
            jobs, messages = count_of(self._jobs, "job"), count_of(checker.messages, "message")
            found = "no violations"
            if self.violations:
                found = f"{count_of(self.violations, 'violation')} in {count_of(self._violating, 'job')}"
            others = f" ({count_of(self._others, 'other')} left out)" if self._others else ""
            hellos = f", {count_of(checker.hellos, 'hello')} of a scheduler" if checker.hellos else ""
            bad = "; not all could be read" if self.bad else ""
            say(f"{self.name}: {jobs}, {messages}{others}{hellos}: {found}{bad}")
            if not checker.messages:
                warn(f"{self.name}: nothing was checked: none of its messages is between job manager and scheduler")

    def _show(self, job: SchedJob) -> None:
        self._jobs += 1
        self.violations += len(job.findings)
        self._violating += bool(job.findings)
        if self._form == "json":
            print_json(sched_json(self.name, job, self._checker))
            return
        try:
            if job.resources is not None:
                job.resources.hosts()
        except ResourceSetError as error:
            complain(f"error: {self.name}: job {job.job}: {error}")
            self.bad += 1
            job.resources = None
        say(sched_line(self.name, job))
        for line in sched_lines(self.name, job, self._checker):
            say(line)


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


def _show_report(log: Log, report: Report) -> None:
    log.look_at_hosts(report)
    say(report_line(log.name, report, incomplete=log.bad > 0 and report.state.phase is not Phase.INACTIVE))
    for finding in report.findings:
        for line in finding_lines(report, finding, log.name):
            say(line)
