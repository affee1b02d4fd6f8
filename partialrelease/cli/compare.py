"""``partialrelease compare``."""

from __future__ import annotations

from typing import Any, Final

import click

from .. import state_graph as sg
from ..instance import Settings
from ..instance_graph import several_jobs
from ..job import LastRank
from ..tlc import TLCError
from ._logs import LAST_RANK
from ._output import complain, ended_by_signals, say, status_line

_RELEASE_AFTER: Final = {"unset": None, "now": 0.0, "timer": 60.0}  # seconds


@click.command(short_help="Compare the complete state graphs of TLA+ and Python.")
@click.option("--ranks", type=click.IntRange(1, 8), default=2, show_default=True, help="Ranks that there are.")
@click.option("--epilogs", type=click.IntRange(0, 8), default=1, show_default=True, help="Epilogs of a job.")
@click.option("--prologs", type=click.IntRange(0, 8), help="Prologs of one job.  [default: 1]")
@LAST_RANK
@click.option("--jobs", type=click.IntRange(1, 8), help="Compare an instance with so many jobs.")
@click.option(
    "--release-after",
    type=click.Choice(list(_RELEASE_AFTER)),
    help="Of an instance: when ranks whose housekeeping is done go to the scheduler.  [default: unset]",
)
@click.option("--no-partial-ok", is_flag=True, help="Of an instance: its scheduler's hello has no partial-ok.")
@click.option("--fluxion", is_flag=True, help="Of an instance: its scheduler forgets a job with its last rank.")
def compare(
    ranks: int,
    epilogs: int,
    prologs: int | None,
    last_rank: str,
    jobs: int | None,
    release_after: str | None,
    no_partial_ok: bool,
    fluxion: bool,
) -> int:
    """Compare the TLA+ specification with the code: their complete state graphs, both ways.

    It is the specification of one job; with --jobs, of an instance: jobs, their housekeeping, and the scheduler.

    What the one allows the other must allow, with the same outcome, and what the one refuses the other must refuse; in
    every state, of every event that there is within the bounds. Needs the extra [tla]. Exit status: 0 they are equal, 1
    they differ, 2 no answer.
    """
    if jobs is None:
        if release_after or no_partial_ok or fluxion:
            raise click.UsageError("--release-after, --no-partial-ok and --fluxion are of an instance: say --jobs too")
        prologs = 1 if prologs is None else prologs
        bounds = f"ranks {ranks}, epilogs {epilogs}, prologs {prologs}, last rank {last_rank}"
        return _compare(sg.one_job(ranks, epilogs, prologs, LastRank(last_rank)), bounds)
    if prologs is not None:
        raise click.UsageError("--prologs is of one job: an instance has none")
    release_after = release_after or "unset"
    off_node = frozenset(range(1, jobs + 1))
    settings = Settings(LastRank(last_rank), _RELEASE_AFTER[release_after], not no_partial_ok, fluxion, off_node)
    bounds = f"jobs {jobs}, ranks {ranks}, epilogs {epilogs}, last rank {last_rank}, release after {release_after}"
    bounds += f"{', no partial-ok' if no_partial_ok else ''}{', Fluxion' if fluxion else ''}"
    return _compare(several_jobs(settings, jobs, ranks, epilogs), bounds)


def _compare(machine: sg.Machine[Any, Any], bounds: str) -> int:
    say(f"{bounds}: {len(machine.events)} events")
    with ended_by_signals(), status_line() as status:
        try:
            theirs = sg.graph_of_tlc(machine, on_progress=lambda _, found: status(f"TLA+: {found:,} states"))
        except TLCError as error:
            complain(f"error: {error}")
            return 2
        ours = sg.graph_of_python(
            machine,
            within=theirs,
            on_progress=lambda found: status(f"Python: {found:,} of {len(theirs.moves):,} states"),
        )
    for name, graph in (("TLA+", theirs), ("Python", ours)):
        say(f"{name:6}  {len(graph.moves)} states, {graph.transitions} transitions, {graph.seconds:.1f} s")
    found = sg.differences(ours, theirs)
    if not found:
        say("The state graphs are equal.")
        return 0
    for line in sg.difference_lines(theirs, found[0]):
        say(line)
    more = f" This is the first; {len(found) - 1} more outcomes differ." if found[1:] else ""
    say(f"THE STATE GRAPHS DIFFER.{more}")
    return 1
