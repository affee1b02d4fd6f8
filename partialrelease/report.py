"""Say what checking found: as JSON, and in words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from .check import MEANING, UNKNOWN, Finding, Hold, Report, known_ranks
from .idset import IdSet
from .job import Exec, HolderKind
from .resources import ResourceSet
from .sched_check import SCHED_MEANING, SchedChecker, SchedCode, SchedJob

__all__ = [
    "finding_lines",
    "name_holder",
    "name_ranks",
    "name_time",
    "plain",
    "report_json",
    "report_line",
    "sched_json",
    "sched_line",
    "sched_lines",
]

_A_YEAR: Final = 365 * 86400.0  # an earlier time is no date but an offset (the human form and --time-format=offset)
_WIDEST: Final = 60
_LONGEST: Final = 1000


@lru_cache(1024)  # the same nodes are allocated again and again
def _text(ranks: IdSet) -> str | None:
    return str(ranks) if known_ranks(ranks) else None


def _hold_json(hold: Hold) -> dict[str, Any]:
    holder = hold.holder
    return {
        "kind": holder.kind.value,
        "description": None if holder.kind is HolderKind.EXEC else holder.description,
        "ranks": _text(holder.ranks),
        "since": None if hold.since == UNKNOWN else hold.since,
    }


def report_json(source: str, report: Report) -> dict[str, Any]:
    """The object that ``check --format json`` prints for a job. Idsets are RFC 22 text, ``None`` where not known."""
    job = report.state
    allocated = _text(job.allocation)
    return {
        "source": source,
        "job": report.job,
        "phase": job.phase,
        "events": report.events,
        "allocated": allocated,
        "held": _text(job.held) if job.held else "",
        "released": allocated if job.released == job.allocation else _text(job.released),
        "holders": [_hold_json(hold) for hold in report.holds()] if job.holders else [],
        "violations": [
            {
                "line": finding.line,
                "timestamp": finding.timestamp,
                "event": finding.violation.event.name,
                "code": finding.violation.code.value,
                "ranks": _text(finding.violation.ranks),
                "holders": [_hold_json(hold) for hold in finding.holds],
                "message": finding.violation.message,
            }
            for finding in report.findings
        ],
    }


def plain(text: str) -> str:
    """Text from a log as one line that does nothing to a terminal: what cannot be printed is escaped."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _cut(text: str, separator: str = ",") -> str:
    """A long list, cut after an element."""
    if len(text) <= _WIDEST:
        return text
    return text[: text.rfind(separator, 0, _WIDEST) + 1 or _WIDEST] + "..."


def name_ranks(ranks: IdSet, resources: ResourceSet | None = None) -> str:
    """``ranks 0-3 (node[0-3])``: with the hosts, where R is known and has them."""
    if not known_ranks(ranks):
        return "all ranks (which ones is not known: no R)"
    if not ranks:
        return "no ranks"
    hosts = str((resources and resources.hosts_of(ranks)) or "")
    where = f" ({_cut(hosts)})" if hosts else ""
    return f"rank{'' if len(ranks) == 1 else 's'} {_cut(str(ranks))}{where}"


def name_holder(hold: Hold, began: float) -> str:
    """``epilog 'dws' (ranks 0-1, since +0.121s)``."""
    since = "before the log begins" if hold.since == UNKNOWN else _offset(hold.since - began)
    return f"{hold.holder} ({name_ranks(hold.holder.ranks)}, since {since})"


def _offset(seconds: float) -> str:
    return f"{seconds:+.3f}s" if abs(seconds) < 1e12 else f"{seconds:+g}s"


def name_time(time: float, began: float) -> str:
    """``+0.459s (2026-12-01 14:18:43.036 UTC)``: from the job's first event on, and as a date where it is one."""
    date = ""
    if time > _A_YEAR:
        try:
            date = f" ({datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3] + " UTC)"
        except (OverflowError, ValueError, OSError):
            date = f" ({time:g})"
    return f"{_offset(time - began)}{date}"


def report_line(source: str, report: Report, *, incomplete: bool = False) -> str:
    """One line that sums up a job. ``incomplete``: its log could not be read to the end."""
    job = report.state
    parts = [f"{job.phase} after {report.events} event{'' if report.events == 1 else 's'}"]
    if not job.allocation:
        parts.append("nothing allocated")
    elif job.held:
        whole = "" if job.held == job.allocation else f" of {name_ranks(job.allocation)}"
        asked = "nobody yet: the exec system has been asked to start it" if job.exec is Exec.REQUESTED else "nobody"
        holders = ", ".join(str(holder) for holder in job.holders[:9]) or asked
        if len(job.holders) > 9:
            holders += f", ... ({len(job.holders)} in all)"
        parts.append(f"holds {name_ranks(job.held, report.resources)}{whole}, referenced by {holders}")
    else:
        what = "lost" if job.lost and not job.released else "released"
        parts.append(f"{name_ranks(job.allocation, report.resources)} {what}")
    count = len(report.findings)
    parts.append("ok" if not count else f"{count} VIOLATION{'' if count == 1 else 'S'}")
    if incomplete:
        parts.append("its log was not read to the end")
    if report.fragment is not None:
        parts.append("fragment: what came before is not known")
    name = source if report.job is None else f"{source} job {report.job}"
    return f"{name}: {'; '.join(parts)}"


def finding_lines(report: Report, finding: Finding, source: str) -> Iterator[str]:
    """The lines that show one violation to a person."""
    violation = finding.violation
    time = name_time(finding.timestamp, report.began)
    yield f"  {source}:{finding.line}: {time}: {violation.event.name}: {violation}"
    if violation.ranks:
        yield f"      {name_ranks(violation.ranks, report.resources)}"
    for hold in finding.holds:
        yield f"      holder: {name_holder(hold, report.began)}"
    yield f"      {MEANING[violation.code]}"


# -- the scheduler's side --

_UNSEEN: Final = frozenset({SchedCode.FreedNotAllocated, SchedCode.HelloNotAllocated})


def sched_json(source: str, job: SchedJob, checker: SchedChecker) -> dict[str, Any]:
    """The object that ``check --sched-trace --format json`` prints for a job. Idsets are RFC 22 text."""
    return {
        "source": source,
        "job": job.job,
        "log": job.log,
        "allocated": None if job.allocated is None else str(job.allocated.ranks),
        "left": None if job.allocated is None else str(job.left.ranks),
        "freed": str(job.freed.ranks),
        "fragments": len(job.fragments),
        "final": job.final is not None,
        "violations": [
            {
                "line": finding.line,
                "timestamp": finding.time - checker.zone,
                "event": finding.event,
                "code": finding.code.value,
                "ranks": str(finding.ranks),
                "holders": [_hold_json(Hold(holder, UNKNOWN)) for holder in finding.holders],
                "message": finding.message,
            }
            for finding in sorted(job.findings, key=lambda finding: finding.line)
        ],
    }


def sched_line(source: str, job: SchedJob) -> str:
    """One line that sums up what the scheduler was told about a job."""
    parts = []
    if job.allocated is not None:
        parts.append(f"{name_ranks(job.allocated.ranks, job.resources)} allocated")
    elif job.granted:
        parts.append("allocated, but the trace does not say what")
    elif any(finding.code in _UNSEEN for finding in job.findings):
        parts.append("not seen to be allocated")
    else:
        parts.append("allocated before the trace")
    count = len(job.fragments)
    if count and not job.freed.ranks:
        parts.append(f"no ranks freed{', final' if job.final else ''}")
    elif count:
        whole = job.allocated is not None and not job.allocated.ranks - job.freed.ranks
        what = "" if whole else f"{name_ranks(job.freed.ranks, job.resources)} "
        pieces = "at once" if count == 1 else f"in {count} fragments"
        final = ", final" if count == 1 else ", the last one final"
        parts.append(f"{what}freed {pieces}{final if job.final else ''}")
    if job.missed:
        parts.append("it ended while no scheduler was loaded")
    elif job.away:
        parts.append(f"{name_ranks(job.away, job.resources)} free, as a hello says")
    elif job.dropped:
        parts.append("the scheduler could not take it over, and raised an exception")
    elif job.left and not job.final:
        left = "all" if job.left == job.allocated else name_ranks(job.left.ranks, job.resources)
        parts.append(f"{left} still allocated")
    found = len(job.findings)
    parts.append("ok" if not found else f"{found} VIOLATION{'' if found == 1 else 'S'}")
    log = "" if job.log is None else f" ({job.log})"
    return f"{source} job {job.job}{log}: {'; '.join(parts)}"


def sched_lines(source: str, job: SchedJob, checker: SchedChecker) -> Iterator[str]:
    """The lines that show a job's violations to a person."""
    for finding in sorted(job.findings, key=lambda finding: finding.line):
        time = name_time(finding.time - checker.zone, job.time - checker.zone)
        yield f"  {source}:{finding.line}: {time}: {finding.event}: {finding.code}: {finding.message}"
        if finding.ranks:
            yield f"      {name_ranks(finding.ranks, job.resources)}"
        for holder in finding.holders:
            yield f"      holder: {holder} ({name_ranks(holder.ranks)})"
        yield f"      {SCHED_MEANING[finding.code]}"
