"""This package as an implementation for ``partialrelease conform``: ``python -m partialrelease.implementation``.

It answers on standard output what it is asked on standard input, a line each (spec/protocol.md).
"""

from __future__ import annotations

import sys

from .idset import IdSetError
from .job import Job, ProtocolViolation, apply
from .protocol import Answer, GarbageError, Queued, Request, Reset, answer_line, read_request, state_of

__all__ = ["Implementation", "serve"]


class Implementation:
    """One job at a time."""

    def __init__(self) -> None:
        self.job = Job()

    def answer(self, request: Request) -> Answer:
        """Do what is asked."""
        match request:
            case Reset():
                self.job = Job(request.last_rank)
            case Queued():
                return state_of(self.job, request.names)
            case _:
                try:
                    self.job = apply(self.job, request)
                except ProtocolViolation as violation:
                    return Answer(frozenset({"code"}), violation.code.value)
        return state_of(self.job)

    def ask(self, line: str) -> str:
        """The same in lines."""
        return answer_line(self.answer(read_request(line)))


def serve(job: Implementation) -> None:
    """Answer until the end of standard input."""
    sys.stdin.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    for number, line in enumerate(sys.stdin, 1):
        try:
            answer = job.ask(line.rstrip("\n"))
        except (GarbageError, IdSetError) as error:
            print(f"error: line {number}: {error}", file=sys.stderr)
            sys.exit(2)
        print(answer, flush=True)


if __name__ == "__main__":
    serve(Implementation())
