"""``partialrelease explain``."""

from __future__ import annotations

import contextlib
import itertools
from collections import deque

import click
from attrs import define, field

from ..check import NotALogStartError, Report, begin_report
from ..explain import HEADINGS, Row, conclusion, fate, make_row
from ..idset import MAX_ID, IdSet
from ..job import LastRank, Phase
from ..resources import ResourceSetError
from ._logs import FRAGMENT, LAST_RANK, Log, R
from ._output import say, show_table


@click.command(short_help="Show one job's log event by event: who holds what, and why.")
@click.argument("file", metavar="FILE")
@R
@FRAGMENT
@LAST_RANK
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
    log = Log(file, r_file, fragment, LastRank(last_rank))
    asked = None if rank is None and host is None else _Asked(rank, host)
    stories = _follow(log, job, asked)
    for story in stories:
        log.look_at_hosts(story.report)
        if len(stories) > 1 or (job is None and story.report.job is not None):
            say(f"job {story.report.job}:")
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
            say(line)
    return 2 if log.bad else 1 if any(story.report.findings for story in stories) else 0


_MOST_ROWS = 1000  # that are shown


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
        say(f"(the last {_MOST_ROWS} of {story.report.events} events)")
    show_table(HEADINGS, rows, problems)


def _follow(log: Log, wanted: int | None, asked: _Asked | None) -> list[_Story]:
    """The stories to tell: of the wanted job; or of those that hold what was asked about, or of the last that did.

    If there are none, an error has been said.
    """
    stories: dict[int | None, _Story] = {}
    last: _Story | None = None
    try:
        for entry in log.entries():
            if wanted is not None and entry.job != wanted:
                continue
            story = stories.get(entry.job)
            if story is None:
                if asked is None and stories:
                    message = "a journal of several jobs; say which with --job, or ask for a --rank or a --host"
                    log.fail(f"{log.name}:{entry.line}: {message}")
                    return []
                report = begin_report(entry, log.begin, fragment=log.fragment, resources=log.resources)
                story = stories[entry.job] = _Story(report)
            found = len(story.report.findings)
            story.report.step(entry)
            story.rows.append(make_row(story.report, entry.timestamp, entry.event, found))
            if asked and wanted is None and entry.job is not None and story.report.state.phase is Phase.INACTIVE:
                del stories[entry.job]
                if asked.ranks(story.report) & story.report.state.allocation:
                    last = story
    except NotALogStartError as error:
        log.fail_start(error)
    told = list(stories.values())
    if asked is not None and (last is not None or len(told) > 1):
        holding = [story for story in told if asked.ranks(story.report) & story.report.state.held]
        told = holding or ([last] if last is not None else [])
    if not told and not log.bad:
        what = f"no events of job {wanted}" if wanted is not None else "no job with what was asked for"
        log.fail(f"{log.name}: {what} in it")
    return told
