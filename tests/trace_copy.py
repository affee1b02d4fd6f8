"""Edited copies of the recorded scheduler trace."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attrs import define

from partialrelease.sched_check import SchedChecker, SchedJob
from partialrelease.sched_trace import read_trace

DATA = Path(__file__).parent / "data"
TRACE = DATA / "sched-trace.txt"

HOUSEKEPT = 106401103872  # freed in four fragments
RELOADED = 268301238272  # had its ranks while the scheduler was reloaded, twice
LEAKED = 343362502656  # allocated, went clean, never freed


@define
class Block:
    """One message as it is printed: the header's words, and the payload."""

    head: str
    payload: Any

    @property
    def topic(self) -> str:
        return self.head.split()[4]

    @property
    def direction(self) -> str:
        return self.head.split()[3]

    def of(self, topic: str, job: int, direction: str = ">") -> bool:
        said = isinstance(self.payload, dict) and self.payload.get("id") == job
        return (self.topic, self.direction) == (topic, direction) and said

    def __str__(self) -> str:
        return self.head + "\n" + ("" if self.payload is None else json.dumps(self.payload, indent=2) + "\n")


def blocks() -> list[Block]:
    """The recorded trace."""
    found = []
    for text in re.split(r"^(?=2026-)", TRACE.read_text(), flags=re.MULTILINE)[1:]:
        head, _, payload = text.partition("\n")
        found.append(Block(head, json.loads(payload) if payload else None))
    return found


def frees(trace: Iterable[Block], job: int) -> list[Block]:
    return [block for block in trace if block.of("sched.free", job)]


def hellos(trace: Iterable[Block], job: int) -> list[Block]:
    return [block for block in trace if block.of("job-manager.sched-hello", job, "<")]


def grant(trace: Iterable[Block], job: int) -> Block:
    (found,) = (block for block in trace if block.of("sched.alloc", job, "<"))
    return found


def lite(block: Block) -> dict[str, Any]:
    """The only entry of R_lite."""
    (entry,) = block.payload["R"]["execution"]["R_lite"]
    assert isinstance(entry, dict)
    return entry


def text(trace: Iterable[Block]) -> bytes:
    return "".join(map(str, trace)).encode()


def check(trace: Iterable[Block], **settings: Any) -> tuple[dict[int, SchedJob], SchedChecker]:
    """The jobs of the trace, and what checked them."""
    checker = SchedChecker(**settings)
    jobs: list[SchedJob] = []
    for message in read_trace("copy", io.BytesIO(text(trace))):
        jobs += checker.step(message)
    jobs += checker.finish()
    return {job.job: job for job in jobs}, checker


def findings(trace: Iterable[Block], **settings: Any) -> list[tuple[int, str, str]]:
    """Each finding's job, code and ranks."""
    jobs, _ = check(trace, **settings)
    return [(job.job, str(f.code), str(f.ranks)) for job in jobs.values() for f in job.findings]
