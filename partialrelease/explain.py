"""Explain one job: its log as a table, an event a row, and who holds what is still held."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from . import events as ev
from .check import UNKNOWN, Hold, Report, known_ranks
from .idset import IdSet
from .job import Exec, HolderKind, Job, LastRank, Phase, decide
from .report import name_holder, name_ranks, name_time

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
            describe(self.event) + (f"\n{self.problem}" if self.problem else ""),
            job.phase.value,
            _set(job.held),
            "\n".join(_reference(hold) for hold in self.holds) + _pending(job),
            _set(job.releasable),
            _set(job.released),
        )

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
    return f"{name}: {_set(hold.holder.ranks) or 'no rank'}"


def _pending(job: Job) -> str:
    return f"(exec asked to start: {_set(job.exec_ranks)})" if job.exec is Exec.REQUESTED else ""


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
        return
    if not job.held:
        yield f"{job.phase}: no rank is held; {name_ranks(job.released, report.resources)} handed over" + (
            f", {name_ranks(job.lost, report.resources)} lost." if job.lost else "."
        )
    else:
        yield f"{job.phase}: {name_ranks(job.held, report.resources)} held."
    for hold in report.holds():
        yield f"  {name_holder(hold, report.began)}: dropped by {_what_drops(job, hold)}."
    yield from _what_else(report, job.held - job.referenced)


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
        yield f"  the exec system has been asked to start the job{since}: over with `finish` and `release final=true`."
    if unreferenced and not job.gate_open:
        yield f"  {name_ranks(unreferenced)}: nobody references them, but the release gate is closed in {job.phase}."
    following = decide(job)
    if following is not None:
        yield f"  the job manager posts next: `{describe(following)}`."
    elif unreferenced and job.gate_open and job.last_rank is LastRank.KEEP:
        yield f"  {name_ranks(unreferenced)}: not referenced, but the last: it stays until `free` (last_rank=keep)."


def fate(report: Report, rows: list[Row], rank: int) -> Iterator[str]:
    """Why one rank is free, or is not."""
    job = report.state
    hosts = report.resources and report.resources.hosts_of(IdSet([rank]))
    name = f"rank {rank} ({hosts})" if hosts else f"rank {rank}"
    if rank not in job.allocation:
        yield f"{name}: not a rank of this job, which has {name_ranks(job.allocation)}."
        return
    if rank not in job.held:
        gone = next(row for row in rows if row.job.allocation and rank not in row.job.held)
        what = "handed over" if rank in job.released else "lost"
        yield f"{name}: {what} by `{describe(gone.event)}` at {name_time(gone.time, report.began)}."
        return
    holds = [hold for hold in report.holds() if rank in hold.holder.ranks]
    count = f"{len(holds)} holder{'' if len(holds) == 1 else 's'}:" if holds else "nobody."
    yield f"{name}: held, and referenced by {count}"
    for hold in holds:
        yield f"  {name_holder(hold, report.began)}: dropped by {_what_drops(job, hold)}."
    if not holds:
        yield from _what_else(report, IdSet([rank]))
