"""What the commands that read logs share: their options, and one log with its R."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

import click

from ..check import NotALogStartError, Report, check_entries
from ..eventlog import LogError, find_r, open_log, read_log, read_r
from ..events import Entry
from ..job import Job, LastRank
from ..report import plain
from ..resources import ResourceSet, ResourceSetError
from ..sched_check import LogsOfFile
from ._output import complain, warn

FILES = click.argument("files", nargs=-1, metavar="[FILE]...")
R = click.option("--R", "r_file", metavar="FILE", help="The job's R (RFC 20). Default: NAME.R beside NAME.eventlog.")
FRAGMENT = click.option(
    "--fragment", is_flag=True, help="The log does not begin with submit: check what can be checked."
)
LAST_RANK = click.option(
    "--last-rank",
    type=click.Choice([setting.value for setting in LastRank]),
    default=LastRank.KEEP.value,
    show_default=True,
    help="May partial-free take the last held rank?",
)


def given_files(files: tuple[str, ...], r_file: str | None) -> tuple[str, ...]:
    """The files to read."""
    files = files or ("-",)
    if files.count("-") > 1:
        raise click.UsageError("standard input can be read only once: give - once")
    if r_file is not None and len(files) > 1:
        raise click.UsageError("--R is the R of one job: give it with one FILE")
    return files


class Log:
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
        self.fragment = fragment
        self.begin = Job(last_rank)
        self._advance = advance
        self._r_file = r_file
        self.resources: ResourceSet | None = None
        self.beside: LogsOfFile | None = None

    def entries(self) -> Iterator[Entry]:
        try:
            r_file = self._r_file or (None if self.file == "-" else find_r(self.file))
            self.resources = read_r(r_file) if r_file else None
            with open_log(self.file, self._advance) as stream:
                entries = read_log(self.name, stream, resources=self.resources, warn=warn)
                yield from entries if self._r_file is None and self.beside is None else self._watched(entries)
        except LogError as error:
            self.fail(str(error))

    def _watched(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        for entry in entries:
            if entry.job is not None and self._r_file is not None:
                raise LogError(self.name, entry.line, "--R is the R of one job, and this is a journal of many")
            if self.beside is not None:
                self.beside.step(entry)
            yield entry

    def fail(self, message: str) -> None:
        complain(f"error: {message}")
        self.bad += 1

    def reports(self) -> Iterator[Report]:
        entries = self.entries()
        try:
            first = next(entries, None)
            if first is not None:
                yield from check_entries(
                    itertools.chain((first,), entries),
                    last_rank=self.begin.last_rank,
                    fragment=self.fragment,
                    resources=self.resources,
                )
        except NotALogStartError as error:
            self.fail_start(error)

    def look_at_hosts(self, report: Report) -> None:
        """Say it if R's nodelist is bad, and go on without."""
        if report.resources is None:
            return
        try:
            report.resources.hosts()
        except ResourceSetError as error:
            self.fail(f"{self.name}: job {report.job}: {error}")
            report.resources = ResourceSet(report.resources.ranks)

    def fail_start(self, error: NotALogStartError) -> None:
        self.fail(f"{self.name}:{error.entry.line}: {error}; --fragment checks what can be checked of it")
