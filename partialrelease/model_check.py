"""The models of the specification, what TLC must find in each, and what it does find.

A model is a configuration ``tla/NAME.cfg`` (or ``tla/rejected/NAME.cfg``); its module is what stands before the first
dash in NAME. It must hold, unless its first line is ``\\* Violates RULE``: then that rule must be found violated.
"""

from __future__ import annotations

import io
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Final

from attrs import frozen

from . import tlc
from .counterexample import first_departure, is_of_one_job, to_entries
from .eventlog import write_log
from .tlavalue import Function, Value, read_value, show_value

__all__ = ["HEADINGS", "Model", "Outcome", "check_models", "find_models"]

HEADINGS: Final = ("model", "expected", "found", "distinct states", "depth", "seconds")

_MOST_AT_A_TIME: Final = 4  # each takes up to a quarter of the memory

_VIOLATES: Final = re.compile(r"\\\* Violates (\w+)")
_COMMENT: Final = re.compile(r"\\\*[^\n]*|\(\*.*?\*\)", re.DOTALL)
_CONSTANT: Final = re.compile(r"^\s*(\w+)\s*=\s*(?:\[\w+\])?(\S.*?)\s*$", re.MULTILINE)  # of that module, in brackets
_KEYWORDS: Final = "CONSTANTS? INIT NEXT SPECIFICATION INVARIANTS? PROPERTY PROPERTIES SYMMETRY VIEW CONSTRAINTS?"
_KEYWORDS_OF_ACTIONS: Final = "ACTION_CONSTRAINTS? ALIAS POSTCONDITION CHECK_DEADLOCK"
_KEYWORD: Final = re.compile(rf"\b({'|'.join((_KEYWORDS + ' ' + _KEYWORDS_OF_ACTIONS).split())})\b")


@frozen
class Model:
    """``expected``: the rule that must be found violated, or ``None``. ``about``: what it, or the design, is."""

    name: str
    module: Path
    config: Path
    expected: str | None
    about: str

    @property
    def expectation(self) -> str:
        return _in_words(self.expected)

    def constants(self) -> Mapping[str, Value]:
        """The values that the configuration gives to constants."""
        values: dict[str, Value] = {}
        for name, text in _CONSTANT.findall(_COMMENT.sub("", self.config.read_text())):
            values[name] = read_value(text)
        return values

    def rules(self, *kinds: str) -> list[str]:
        """The names that the configuration lists under ``INVARIANT`` or ``PROPERT``(Y, IES)."""
        _, *parts = _KEYWORD.split(_COMMENT.sub("", self.config.read_text()))
        sections = zip(parts[::2], parts[1::2], strict=True)
        return [name for keyword, text in sections if keyword.startswith(kinds) for name in text.split()]


@frozen
class Outcome:
    """What TLC found in a model. ``found``: the rule that is violated, or ``None``."""

    model: Model
    result: tlc.Result
    found: str | None

    @property
    def as_expected(self) -> bool:
        return self.found == self.model.expected

    @property
    def finding(self) -> str:
        return _in_words(self.found)

    def row(self) -> tuple[str, ...]:
        """The cells of a table with ``HEADINGS``."""
        figures = f"{self.result.distinct:,}", str(self.result.depth), f"{self.result.seconds:.1f}"
        return self.model.name, self.model.expectation, self.finding, *figures

    def story(self, eventlogs: str | None, states: bool) -> Iterator[str]:
        """The counterexample, a line at a time: as an eventlog, or written to the folder ``eventlogs``; as states.

        Where there is no eventlog (not the life of one job, from its submission), as states. Raises ``OSError``.
        """
        trace = self.result.trace
        head = f"{self.model.name} {self.finding}, in {len(trace)} states"
        constants = self.model.constants()
        if not is_of_one_job(trace):
            yield f"{head} (no eventlog: it is not the life of one job, from its submission):"
            yield from self._states()
            yield from self._ending()
            return
        entries = to_entries(trace, constants)
        explain = f"`partialrelease explain --last-rank {constants.get('LastRank', 'keep')}`"
        if eventlogs is None:
            yield f"{head}. As an eventlog, for {explain}:"
            text = io.StringIO()
            write_log(entries, text)
            yield from text.getvalue().splitlines()
        else:
            file = Path(eventlogs, f"{self.model.name}.eventlog")
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("w") as stream:
                write_log(entries, stream)
            yield f"{head}. As an eventlog, for {explain}: {file}"
        nowhere = "By the rules of one job each event may happen: what is wrong is their order, or what never follows."
        yield f"  {first_departure(trace, constants, entries) or nowhere}"
        if states:
            yield from self._states()
        yield from self._ending()

    def _states(self) -> Iterator[str]:
        before: Mapping[str, Value] = {}
        for state in self.result.trace:
            yield f"  state {state.number}{': ' if state.action else ''}{state.action}"
            now = {name: read_value(text) for name, text in state.values.items()}
            for name, value in now.items():
                yield from (f"    {line}" for line in _changes(name, before.get(name), value))
            before = now

    def _ending(self) -> Iterator[str]:
        if self.result.lasso is not None:
            ends = self.result.lasso == self.result.trace[-1].number
            yield f"  And then {'nothing more happens' if ends else f'for ever again from state {self.result.lasso}'}."


def _changes(name: str, was: Value | None, now: Value) -> Iterator[str]:
    """What the value has become, a line each part of it that has changed."""
    before, after = (dict(value) if isinstance(value, Function) else {} for value in (was, now))
    if after and before.keys() == after.keys():
        for argument in sorted(after):
            yield from _changes(f"{name}.{argument}", before[argument], after[argument])
    elif now != was:
        text = show_value(now).replace('"', "")
        yield f"{name} = {text}"


def _in_words(rule: str | None) -> str:
    return "holds" if rule is None else f"violates {rule}"


def find_models(folder: Path) -> tuple[Model, ...]:
    """The models below ``folder``, and then the rejected designs, by name."""
    configs = [*sorted(folder.glob("*.cfg")), *sorted((folder / "rejected").glob("*.cfg"))]
    return tuple(map(_model, configs))


def _model(config: Path) -> Model:
    first = config.read_text().partition("\n")[0]
    module = config.with_name(f"{config.stem.partition('-')[0]}.tla")
    about = first.removeprefix("\\*").strip()
    violates = _VIOLATES.fullmatch(first)
    if violates and module.is_file() and (comment := re.search(r"\(\*(.*?)\*\)", module.read_text(), re.DOTALL)):
        about = " ".join(comment[1].split())
    return Model(config.stem, module, config, violates[1] if violates else None, about)


def check_models(
    models: Iterable[Model],
    *,
    at_a_time: int | None = None,
    run: Callable[..., tlc.Result] = tlc.run,
    on_progress: Callable[[Model, int, int], object] | None = None,
) -> Iterator[Outcome]:
    """Have TLC check the models, several at a time; the outcomes come as they are there.

    ``run``: :func:`tlc.run`, or what does the same. ``on_progress`` is told the model and its numbers of generated and
    of distinct states, by any thread. Raises :class:`tlc.TLCError`; whatever ends this ends all that runs.
    """
    stop = threading.Event()

    def check(model: Model) -> Outcome:
        def progress(generated: int, distinct: int) -> None:
            if stop.is_set():
                raise tlc.TLCError("stopped")
            if on_progress is not None:
                on_progress(model, generated, distinct)

        progress(0, 0)
        result = run(model.module, model.config, options=["-deadlock"], on_progress=progress)
        return Outcome(model, result, _found(model, result))

    with ThreadPoolExecutor(at_a_time or min(_MOST_AT_A_TIME, len(os.sched_getaffinity(0)))) as pool:
        pending = {pool.submit(check, model) for model in models}
        try:
            while pending:
                # With a timeout, as a Ctrl-C may reach another thread and then does not wake this one.
                done, pending = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
                for outcome in done:
                    yield outcome.result()
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)


def _found(model: Model, result: tlc.Result) -> str | None:
    """What is violated; where TLC does not say it, all that it can be."""
    kinds = {"Temporal": ["PROPERT"], "Unnamed": ["INVARIANT", "PROPERT"]}.get(result.violated or "")
    return " or ".join(model.rules(*kinds)) if kinds else result.violated
