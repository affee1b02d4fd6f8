"""``partialrelease compare``."""

from __future__ import annotations

import click

from .. import state_graph as sg
from ..job import LastRank
from ..tlc import TLCError
from ._logs import LAST_RANK
from ._output import complain, ended_by_signals, say, status_line


@click.command()
@click.option("--ranks", type=click.IntRange(1, 8), default=2, show_default=True, help="Ranks that there are.")
@click.option("--epilogs", type=click.IntRange(0, 8), default=1, show_default=True, help="Epilogs that there are.")
@click.option("--prologs", type=click.IntRange(0, 8), default=1, show_default=True, help="Prologs that there are.")
@LAST_RANK
def compare(ranks: int, epilogs: int, prologs: int, last_rank: str) -> int:
    """Compare the TLA+ specification of a job with the code: their complete state graphs, both ways.

    What the one allows the other must allow, with the same outcome, and what the one refuses the other must refuse; in
    every state, of every event that there is within the bounds. Needs the extra [tla]. Exit status: 0 they are equal, 1
    they differ, 2 no answer.
    """
    machine = sg.one_job(ranks, epilogs, prologs, LastRank(last_rank))
    say(f"ranks {ranks}, epilogs {epilogs}, prologs {prologs}, last rank {last_rank}: {len(machine.events)} events")
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
