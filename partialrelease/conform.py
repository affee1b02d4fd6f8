"""Does an implementation do what the specification says? It is driven over the line protocol (spec/protocol.md).

First the conformance vectors, then sequences that Hypothesis makes up, against this package. What it does otherwise is
a :class:`Difference`: also to crash, to hang, or to say what is no answer. The smallest sequence that shows it is
looked for.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from tempfile import TemporaryDirectory
from typing import Final, Protocol

from attrs import define, field, frozen

from .events import Event
from .idset import IdSet
from .implementation import Implementation
from .job import Code, Job, LastRank, guard
from .protocol import (
    OPTIONAL,
    Answer,
    GarbageError,
    Queued,
    Request,
    Reset,
    can_be_asked,
    read_answer,
    request_line,
)
from .vectors import Vector

__all__ = [
    "CannotStartError",
    "Difference",
    "Driver",
    "Process",
    "Result",
    "Spoke",
    "check_generated",
    "check_vectors",
    "explained",
    "smallest",
]

LONGEST_REQUEST: Final = 4000  # bytes: implementations may read into a fixed buffer of 4096
_LONGEST_ANSWER: Final = 1 << 16  # bytes
_MOST_NOISE: Final = 1 << 12  # bytes
_START: Final = 10.0  # seconds that it may take to start, besides
_MOMENT: Final = 0.5  # seconds in which a process must end when its input has ended


class CannotStartError(Exception):
    """The command cannot be run. The text is one line."""


class NoAnswerError(Exception):
    """There was no answer. The text says why: it ended, it hung, it went on and on."""


class Spoke(Protocol):
    """What answers lines: a :class:`Process`, or anything in this one."""

    def ask(self, line: str) -> str:
        """The answer's line, both without their ends. Raises :class:`NoAnswerError`."""


# -- a process --


class Process:
    """The implementation as a process. It is started when it is asked, and again after it has not answered."""

    def __init__(self, command: Sequence[str], timeout: float) -> None:
        self.command = list(command)
        self.timeout = timeout
        self.patience: Final = timeout  # what was asked for: the timeout is less while a smaller sequence is sought
        self.noise = b""  # the last of what it said on standard error
        self.slowest = 0.0  # seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self, patience: float = _MOMENT) -> None:
        """End it, and whatever it has started; of itself it may end for so many seconds."""
        process, self._process, self._rest = self._process, None, b""
        if process is None:
            return
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._selector.close()
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()

    def ask(self, line: str) -> str:
        starting = 0.0 if self._process else _START
        process = self._process or self._start()
        began = time.monotonic()
        assert process.stdin is not None
        try:
            process.stdin.write(line.encode(errors="replace") + b"\n")
        except OSError:
            raise NoAnswerError(self._ended(process)) from None
        try:
            answer = self._read(process, began + self.timeout + starting)
        except NoAnswerError:
            self.stop(0)
            raise
        if not starting:
            self.slowest = max(self.slowest, time.monotonic() - began)
        return answer

    def _start(self) -> subprocess.Popen[bytes]:
        try:
            process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise CannotStartError(f"{self.command[0]}: cannot be run: {error.strerror}") from None
        except ValueError as error:
            raise CannotStartError(f"{self.command[0]!r}: cannot be run: {error}") from None
        assert process.stdout is not None
        assert process.stderr is not None
        self._selector = selectors.DefaultSelector()
        self._selector.register(process.stdout, selectors.EVENT_READ)
        self._selector.register(process.stderr, selectors.EVENT_READ)
        self._process = process
        self.noise = b""
        return process

    def _read(self, process: subprocess.Popen[bytes], until: float) -> str:
        """One line."""
        assert process.stdout is not None
        while b"\n" not in self._rest:
            if len(self._rest) > _LONGEST_ANSWER:
                raise NoAnswerError(f"said more than {_LONGEST_ANSWER} bytes without an end of line")
            left = until - time.monotonic()
            ready = self._selector.select(left) if left > 0 else []
            if not ready:
                raise NoAnswerError(f"did not answer within {self.timeout:g} s")
            for key, _ in ready:
                data = os.read(key.fd, 1 << 16)
                if key.fileobj is not process.stdout:
                    self.noise = (self.noise + data)[-_MOST_NOISE:]
                    if not data:
                        self._selector.unregister(key.fileobj)
                elif data:
                    self._rest += data
                else:
                    raise NoAnswerError(self._ended(process))
        answer, _, self._rest = self._rest.partition(b"\n")
        if self._rest:
            raise NoAnswerError(f"said more than one line: {_shown(answer)} and {_shown(self._rest)}")
        try:
            return answer.decode()
        except UnicodeDecodeError:
            raise NoAnswerError(f"said what is not UTF-8: {_shown(answer)}") from None

    def _ended(self, process: subprocess.Popen[bytes]) -> str:
        """It has closed its output: why, and its last words."""
        assert process.stderr is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_MOMENT)
        os.set_blocking(process.stderr.fileno(), False)
        with contextlib.suppress(OSError):
            while data := os.read(process.stderr.fileno(), 1 << 16):
                self.noise = (self.noise + data)[-_MOST_NOISE:]
        status = process.poll()
        self.stop(0)
        if status is None:
            return "closed its standard output"
        if status < 0:
            return f"was ended by {signal.Signals(-status).name}"
        return f"ended with status {status}"


def _shown(data: bytes) -> str:
    text = repr(data[:80].decode(errors="backslashreplace"))
    return f"{text}..." if len(data) > 80 else text


# -- asking --


@frozen
class Difference:
    """The implementation does otherwise. ``exchanges``: what was asked and what had to be answered; all but the last
    was.

    ``answered``: the line that it said to the last one, ``""`` for none. ``why``: what is wrong with that ("it ...").
    ``noise``: the last that it wrote on standard error.
    """

    last_rank: LastRank
    exchanges: tuple[tuple[Request, Answer], ...]
    answered: str
    why: str
    noise: str = ""

    @property
    def events(self) -> list[Event]:
        """The events of the sequence."""
        return [request for request, _ in self.exchanges if isinstance(request, Event)]


@define
class Driver:
    """Asks, and compares. ``asked``: how many requests. ``gives``: which optional parts of an answer it gives.

    What an implementation leaves out of its first answer it must leave out of every one.
    """

    spoke: Spoke
    asked: int = 0
    gives: frozenset[str] | None = None
    codes: bool | None = None
    _parsed: dict[str, Answer | GarbageError] = field(factory=dict)

    def follow(self, exchanges: Iterable[tuple[Request, Answer]]) -> Difference | None:
        """Ask in turn, from a :class:`Reset` on. The first difference, if there is one."""
        followed: list[tuple[Request, Answer]] = []
        for request, expected in exchanges:
            followed.append((request, expected))
            wrong = self._ask(request, expected)
            if wrong is not None:
                first = followed[0][0]
                assert isinstance(first, Reset)
                noise = self.spoke.noise.decode(errors="replace") if isinstance(self.spoke, Process) else ""
                return Difference(first.last_rank, tuple(followed), *wrong, noise)
        return None

    def _ask(self, request: Request, expected: Answer) -> tuple[str, str] | None:
        """The answer, and what is wrong with it."""
        self.asked += 1
        try:
            line = self.spoke.ask(request_line(request))
        except NoAnswerError as error:
            return "", str(error)
        answer = self._parsed.get(line)
        if answer is None:
            try:
                answer = read_answer(line)
            except GarbageError as error:
                answer = error
            if len(self._parsed) < 10_000:
                self._parsed[line] = answer
        wrong = f"says garbage: {answer}" if isinstance(answer, GarbageError) else self._compare(expected, answer)
        return None if wrong is None else (line, wrong)

    def _compare(self, expected: Answer, answer: Answer) -> str | None:
        if answer.code is not None and self.codes is None:
            self.codes = bool(answer.code)
        if answer.code is None and self.gives is None:
            self.gives = answer.said
        if expected.code is not None:
            if answer.code is None:
                return "takes an event that must be refused"
            if bool(answer.code) != self.codes:
                return "says the code of some violations only"
            return "another violation" if self.codes and answer.code != expected.code else None
        if answer.code is not None:
            return "refuses an event that may happen"
        if answer.said != self.gives:
            some = sorted(answer.said ^ (self.gives or frozenset()))
            return f"says {' and '.join(map(repr, some))} in some answers only"
        wrong = [name for name in expected.said & answer.said if getattr(answer, name) != getattr(expected, name)]
        return f"differs in {', '.join(sorted(wrong))}" if wrong else None

    @property
    def not_compared(self) -> list[str]:
        """What the implementation leaves out of its answers."""
        left_out = [name for name in OPTIONAL if self.gives is not None and name not in self.gives]
        return [*left_out, *(["the violation's code"] if self.codes is False else [])]


@frozen
class Result:
    """What came of the vectors, or of what was generated: how many sequences, how many differ, and the smallest."""

    sequences: int
    different: int
    smallest: Difference | None = None


def explained(difference: Difference) -> str:
    """Why the last request is the violation that it is; ``""`` where it is none."""
    reference = Implementation()
    *before, (last, answer) = difference.exchanges
    for request, _ in before:
        reference.answer(request)
    violation = guard(reference.job, last) if isinstance(last, Event) and answer.code else None
    return "" if violation is None else violation.message


_ENOUGH: Final = 10  # differences, to choose the smallest of


def check_vectors(
    driver: Driver, vectors: Sequence[Vector], on_progress: Callable[[int], object] = lambda done: None
) -> Result:
    """Ask the vectors, until enough have shown a difference, and look for the smallest sequence that shows one."""
    found: list[Difference] = []
    for done, vector in enumerate(vectors):
        on_progress(done)
        if difference := driver.follow(vector.exchanges):
            found.append(difference)
            if len(found) == _ENOUGH or not difference.answered:  # to crash or to hang takes long
                break
    if not found:
        return Result(len(vectors), 0)
    return Result(done + 1, len(found), smallest(driver, min(found, key=lambda each: len(each.exchanges))))


# -- sequences that are made up --


def expected(requests: Iterable[Request]) -> Iterator[tuple[Request, Answer]]:
    """The requests with what this package answers; no further than to where it is not said what then is the case."""
    reference = Implementation()
    for request in requests:
        answer = reference.answer(request)
        yield request, answer
        if answer.code == Code.ResourcesLost:
            return


def _wait_no_longer(driver: Driver, difference: Difference) -> None:
    """An implementation that hangs would be waited for often, while what makes it hang is made smaller."""
    if isinstance(driver.spoke, Process) and not difference.answered:
        driver.spoke.timeout = min(driver.spoke.timeout, max(0.25, 20 * driver.spoke.slowest))


def _confirmed(driver: Driver, best: Difference, first: Difference) -> Difference:
    """The best, unless there is an answer to it when it is waited for as long as was asked for: then the first."""
    if not isinstance(driver.spoke, Process) or driver.spoke.timeout == driver.spoke.patience:
        return best
    driver.spoke.timeout = driver.spoke.patience
    return driver.follow(best.exchanges) or first


def smallest(driver: Driver, difference: Difference, first: Difference | None = None) -> Difference:
    """A smaller sequence at whose end there is a difference too; none of its requests can be left out.

    ``first``: the difference that ``difference`` is already a smaller one of.
    """
    _wait_no_longer(driver, difference)
    best = difference
    size = len(best.exchanges) // 2
    while size:
        start = 1  # the reset stays
        while start < len(best.exchanges):
            requests = [request for request, _ in best.exchanges]
            shorter = driver.follow(expected([*requests[:start], *requests[start + size :]]))
            if shorter is None:
                start += size
            else:
                best = shorter
        size = min(size // 2, len(best.exchanges))
    return _confirmed(driver, best, first or difference)


def check_generated(
    driver: Driver, examples: int, seed: int, on_progress: Callable[[int], object] = lambda done: None
) -> Result:
    """Ask so many sequences that Hypothesis makes up, and between their events what must be refused.

    Needs the extra ``[hypothesis]``: raises ``ImportError``.
    """
    from hypothesis import HealthCheck, given, settings
    from hypothesis import Phase as Stage
    from hypothesis import seed as seeded
    from hypothesis import strategies as st
    from hypothesis.configuration import set_hypothesis_home_dir
    from hypothesis.errors import Flaky

    from .strategies import Log, legal_logs

    found: list[Difference] = []
    done = 0

    @seeded(seed)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=False,
        phases=[Stage.generate, Stage.shrink],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @given(legal_logs(ranks=st.sets(st.integers(0, 7), min_size=1, max_size=5).map(IdSet)))
    def ask(log: Log) -> None:
        nonlocal done
        if not found:
            done += 1
            on_progress(done)
        difference = driver.follow(expected(_with_probes(log.last_rank, log.events)))
        if difference is not None:
            found.append(difference)
            _wait_no_longer(driver, difference)
            raise AssertionError(difference.why)

    with TemporaryDirectory(prefix="partialrelease-") as scratch:
        set_hypothesis_home_dir(scratch)  # or it would leave a folder where the user is
        try:
            ask()
        except (AssertionError, Flaky):
            return Result(done, 1, smallest(driver, found[-1], found[0]))
        finally:
            set_hypothesis_home_dir(None)
    return Result(done, 0)


def _with_probes(last_rank: LastRank, events: Sequence[Event]) -> Iterator[Request]:
    """The events; before each some of what must be refused then, and after the last all of it."""
    reference = Implementation()
    yield Reset(last_rank)
    reference.answer(Reset(last_rank))
    for number, event in enumerate(events):
        yield from _refused(reference.job)[number % _PART :: _PART]
        reference.answer(event)
        yield event
    yield from _refused(reference.job)
    yield Queued(("memo", "epilog-start"))


_PART: Final = 8  # an implementation is asked about the last state most


@lru_cache(4096)
def _refused(job: Job) -> list[Event]:
    from .strategies import probes

    return [
        event
        for event in probes(job)
        if (no := guard(job, event)) and no.code is not Code.ResourcesLost and _fits(event)
    ]


@lru_cache(4096)
def _fits(event: Event) -> bool:
    return can_be_asked(event) and len(request_line(event).encode()) <= LONGEST_REQUEST
