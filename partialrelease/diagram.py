"""The job's state diagram, drawn from the state graph of the code, as Mermaid text.

``python -m partialrelease.diagram FILE`` puts it between the markers of FILE: of ``tla/README.md``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from . import events as ev
from .job import Exec, Job, Phase
from .state_graph import one_job

__all__ = ["BEGIN", "END", "mermaid", "renewed"]

BEGIN: Final = "<!-- drawn by `python -m partialrelease.diagram tla/README.md`: -->\n"
END: Final = "<!-- as far as here -->\n"

# The states of the diagram: the phases, some of them in parts.
_GROUPS: Final = {
    "before the allocation": ["NEW", "DEPEND", "PRIORITY", "SCHED"],
    "RUN": ["prologs run", "start requested", "shells run"],
    "CLEANUP": ["gate closed", "gate open", "freed, or lost"],
}


def _state(job: Job) -> str:
    if job.phase is Phase.RUN:
        prologs, requested, running = _GROUPS["RUN"]
        return prologs if job.exec is Exec.IDLE else running if job.exec is Exec.RUNNING else requested
    if job.phase is Phase.CLEANUP:
        closed, open_, over = _GROUPS["CLEANUP"]
        return over if job.closed else open_ if job.gate_open else closed
    return job.phase.value


def _label(event: ev.Event) -> str:
    if isinstance(event, ev.JobException):
        return "scheduler-restart" if event.type == "scheduler-restart" else "fatal exception"
    if isinstance(event, ev.Release):
        return "final release" if event.final else "release"
    return event.name


def mermaid() -> str:
    """The diagram: which events lead from each state to another, or change the job and leave it there."""
    machine = one_job()
    moves: dict[tuple[str, str], list[str]] = {}
    seen, todo = {machine.first}, [machine.first]
    for before in todo:
        for event in (event for same in machine.events.values() for event in same):
            after = machine.step(before, event)
            if after is None or after == before:
                continue
            labels = moves.setdefault((_state(before), _state(after)), [])
            if _label(event) not in labels:
                labels.append(_label(event))
            if after not in seen:
                seen.add(after)
                todo.append(after)
    nodes = {name: f"s{number}" for number, name in enumerate(dict.fromkeys(name for pair in moves for name in pair))}
    lines = ["flowchart TD"]
    for group, parts in _GROUPS.items():
        nodes[group] = f"g{len(lines)}"
        anywhere = ", ".join(_draw_once(moves, parts, group))
        lines.append(f'    subgraph {nodes[group]} ["{group}{anywhere and f" (anywhere: {anywhere})"}"]')
        lines += [f"        {nodes[part]}" for part in parts]
        lines.append("    end")
    lines += [f'    {node}("{name}")' for name, node in nodes.items() if name not in _GROUPS]
    lines += [
        f'    {nodes[source]} -->|"{", ".join(labels)}"| {nodes[end]}'
        for (source, end), labels in moves.items()
        if labels
    ]
    return "\n".join([*lines, ""])


def _draw_once(moves: dict[tuple[str, str], list[str]], parts: list[str], group: str) -> list[str]:
    """What leads from each part of a group to the same state is drawn once, from the group.

    Returns what may happen in each part and leads nowhere else.
    """
    for end in dict.fromkeys(end for _, end in moves if end not in parts):
        moves[group, end] = _common([moves.get((part, end), []) for part in parts])
    return _common([moves.get((part, part), []) for part in parts])


def _common(rows: list[list[str]]) -> list[str]:
    """What is in all rows, and then in none."""
    common = [label for label in rows[0] if all(label in row for row in rows)]
    for row in rows:
        row[:] = [label for label in row if label not in common]
    return common


def renewed(text: str) -> str:
    """The text with the diagram between its markers. Raises :class:`ValueError` where it has none."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"there are no lines {BEGIN.strip()} and {END.strip()} in it")
    return f"{before}{BEGIN}```mermaid\n{mermaid()}```\n{END}{after}"


def _main(args: list[str]) -> int:
    if len(args) != 1:
        print("usage: python -m partialrelease.diagram FILE", file=sys.stderr)
        return 2
    file = Path(args[0])
    try:
        file.write_text(renewed(file.read_text(encoding="utf-8")), encoding="utf-8")
    except (OSError, ValueError) as error:
        print(f"error: {file}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
