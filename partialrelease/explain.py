"""Explain one job: its log as a table, an event a row, and who holds what is still held."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import frozen

from . import events as ev
from .check import UNKNOWN, Hold, Report, known_ranks
from .idset import IdSet
from .job import Exec, HolderKind, Job, Phase, decide
from .report import name_holder, name_ranks, name_time, plain

__all__ = ["HEADINGS", "Row", "conclusion", "describe", "fate", "make_row"]

HEADINGS = ("time", "event", "phase", "held", "referenced by", "releasable", "released")


@frozen
class Row:
    """One event and the job after it. ``problem``: the violation that the event is, or ``""``."""

    time: float
    event: ev.Event
    job: Job
    holds: tuple[Hold, ...]
    problem: str

    def cells(self, began: float) -> tuple[str, ...]:
        job = self.job
        return (
            f"{self.time - began:+.3f}",
            plain(describe(self.event)) + (f"\n{plain(self.problem)}" if self.problem else ""),
            job.phase.value,
            _set(job.held),
            "\n".join(self._references()),
            _set(job.releasable),
            _set(job.released),
        )

    def _references(self) -> Iterator[str]:
        yield from map(_reference, self.holds[:9])
        if len(self.holds) > 9:
            yield f"... ({len(self.holds)} in all)"
        if self.job.exec is Exec.REQUESTED:
            yield f"(exec asked to start: {_set(self.job.exec_ranks) or 'no rank'})"

    def touches(self, before: Row | None, rank: int) -> bool:
        """Whether something about ``rank`` is not as it was before, or the event is a violation."""
        return bool(self.problem) or before is None or self._about(rank) != before._about(rank)

    def _about(self, rank: int) -> object:
        job = self.job
        holders = tuple(str(holder) for holder in job.holders if rank in holder.ranks)
        return job.phase, rank in job.held, rank in job.releasable, rank in job.released, holders


def make_row(report: Report, time: float, event: ev.Event, found_before: int) -> Row:
    """The row of the event that ``report`` has just been given."""
    found = report.findings[found_before:]
    return Row(time, event, report.state, report.holds(), "; ".join(str(f.violation) for f in found))


def _set(ranks: IdSet) -> str:
    if not known_ranks(ranks):
        return "all"
    text = str(ranks)
    return text if len(text) <= 40 else f"{text[: text.rfind(',', 0, 36) + 1]}... ({len(ranks)})"


def _reference(hold: Hold) -> str:
    name = "exec" if hold.holder.kind is HolderKind.EXEC else hold.holder.description
    return f"{plain(name)}: {_set(hold.holder.ranks) or 'no rank'}"


def describe(event: ev.Event) -> str:
    """The event and what of it matters to the machine, in one line."""
    words = [event.name]
    if isinstance(event, ev.JobException):
        words.append(f"{event.type} severity {event.severity}")
    ranks = getattr(event, "ranks", None)
    if ranks is not None:
        words.append(_set(ranks) or '""')
    description = getattr(event, "description", None)
    if description is not None:
        words.append(repr(description))
    if getattr(event, "final", False):
        words.append("final")
    return " ".join(words)


def conclusion(report: Report) -> Iterator[str]:
    """What is held at the end of the log: by whom, since when, and what would release it."""
    job = report.state
    if not job.allocation:
        yield f"{job.phase}: nothing is allocated."
    elif job.held:
        yield f"{job.phase}: {name_ranks(job.held, report.resources)} held."
    else:
        lost = f", {name_ranks(job.lost, report.resources)} lost" if job.lost else ""
        yield f"{job.phase}: no rank is held; {name_ranks(job.released, report.resources)} handed over{lost}."
    yield from _holders(report, report.holds())
    yield from _what_else(report, job.held - job.referenced)


def _holders(report: Report, holds: Iterable[Hold]) -> Iterator[str]:
    over = report.state.phase is Phase.INACTIVE
    for hold in holds:
        end = "was still active at the end" if over else f"dropped by {_what_drops(report.state, hold)}"
        yield f"  {name_holder(hold, report.began)}: {end}."


def _what_drops(job: Job, hold: Hold) -> str:
    holder = hold.holder
    if holder.kind is HolderKind.EXEC:
        return "`release final=true`" if job.exec is Exec.FINISHED else "`finish`, and then `release final=true`"
    if holder.kind is HolderKind.PROLOG:
        return f"`prolog-finish description={holder.description!r}`"
    parts = f", or part by part by `release ranks=... description={holder.description!r}`" if holder.ranks else ""
    return f"`epilog-finish description={holder.description!r}`{parts}"


def _what_else(report: Report, unreferenced: IdSet) -> Iterator[str]:
    """Why what nobody references is held all the same, and what comes next."""
    job = report.state
    if job.phase is Phase.INACTIVE:
        return
    if job.exec is Exec.REQUESTED:
        since = "" if report.exec_since == UNKNOWN else f" (since {name_time(report.exec_since, report.began)})"
        ends = "`release final=true`" if job.phase is Phase.CLEANUP else "`finish` and `release final=true`"
        yield f"  the exec system has been asked to start the job{since}: over with {ends}."
    if unreferenced and not job.gate_open:
        why = "the exec system is not done" if job.phase is Phase.CLEANUP else f"the job is in {job.phase}"
        yield f"  {name_ranks(unreferenced)}: not referenced, but the release gate is closed: {why}."
    following = decide(job)
    handed_over = following.ranks if isinstance(following, ev.PartialFree) else unreferenced
    if following is not None and (handed_over & unreferenced or not unreferenced):
        yield f"  the job manager posts next: `{describe(following)}`."
    elif unreferenced and job.gate_open:
        kept = name_ranks(IdSet([unreferenced.min()]))
        yield f"  {kept}: not referenced, but the last one stays (last_rank=keep) until `free`, which waits for:"
        yield from _holders(report, report.holds())


def fate(report: Report, rows: Iterable[Row], rank: int) -> Iterator[str]:
    """Why one rank is free, or is not."""
    job = report.state
    hosts = str((report.resources and report.resources.hosts_of(IdSet([rank]))) or "")
    name = f"rank {rank} ({hosts})" if hosts else f"rank {rank}"
    if not known_ranks(job.allocation):
        yield f"{name}: which ranks the job has is not known; give its R with --R."
        return
    if rank not in job.allocation:
        yield f"{name}: not a rank of this job, which has {name_ranks(job.allocation)}."
        return
    if rank not in job.held:
        what = "handed over to housekeeping" if rank in job.released else "lost"
        gone = next((row for row in rows if row.job.allocation and rank not in row.job.held), None)
        when = f" by `{describe(gone.event)}` at {name_time(gone.time, report.began)}" if gone else ""
        yield f"{name}: {what}{when}{f'. {gone.problem}' if gone and gone.problem else ''}."
        return
    holds = [hold for hold in report.holds() if rank in hold.holder.ranks]
    count = f"{len(holds)} holder{'' if len(holds) == 1 else 's'}:" if holds else "nobody."
    yield f"{name}: held, and referenced by {count}"
    yield from _holders(report, holds)
    if not holds:
        yield from _what_else(report, IdSet([rank]))
