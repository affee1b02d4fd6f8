"""``partialrelease model-check``."""

from __future__ import annotations

import contextlib
import difflib
import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from .. import model_check as mc
from .. import tlc
from ._output import complain, ended_by_signals, say, show_table


@click.command("model-check", short_help="Have TLC check the models of the TLA+ specification.")
@click.argument("names", nargs=-1, metavar="[MODEL]...")
@click.option("--list", "listing", is_flag=True, help="List the models, and what must be found in each.")
@click.option("--counterexample", is_flag=True, help="Print the counterexamples of the rejected designs too.")
@click.option("--states", is_flag=True, help="Print counterexamples as states of TLA+ too.")
@click.option("--eventlogs", metavar="DIR", help="Write counterexamples to DIR/MODEL.eventlog, for `explain`.")
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Models at a time. Default: one a CPU, at most 4.")
@click.option("--workers", type=click.IntRange(1), default=1, metavar="N", help="TLC's workers a model. Default: 1.")
@click.option("--distributed", is_flag=True, help="TLC's distributed mode: the workers are processes.")
@click.option("--host", metavar="ADDRESS", help="Of the distributed mode. Default: 127.0.0.1.")
def model_check(
    names: tuple[str, ...],
    listing: bool,
    counterexample: bool,
    states: bool,
    eventlogs: str | None,
    jobs: int | None,
    workers: int,
    distributed: bool,
    host: str | None,
) -> int:
    """Have TLC check the models of the TLA+ specification: all, or those named. Needs the extra [tla].

    Each rejected design must be found to violate its rule, and each other model must hold. Exit status: 0 all as
    expected, 1 a difference, 2 no answer.

    --distributed is for a model too large for one machine. It cannot check temporal properties (EarlyRelease,
    EventuallyClean), does not say which rule is violated, and shows only the last step of a counterexample. With the
    --host of another interface, workers on other machines can join. Its ports ask for no password, and are open on all
    interfaces whatever the --host: use it where the network can be trusted.
    """
    try:
        models = {model.name: model for model in mc.find_models(tlc.spec_folder())}
    except tlc.TLCError as why:
        complain(f"error: {why}")
        return 2
    for name in names:
        if name not in models:
            like = difflib.get_close_matches(name, models)
            meant = f"; did you mean {' or '.join(like)}?" if like else "."
            raise click.UsageError(f"there is no model {name!r}{meant} --list says which there are")
    chosen = [models[name] for name in dict.fromkeys(names or models)]
    if listing:
        show_table(("model", "expected", "what"), ([model.name, model.expectation, model.about] for model in chosen))
        return 0
    if distributed and not names:
        raise click.UsageError("--distributed is for single large models: name them")
    if host is not None and not distributed:
        raise click.UsageError("--host is of the distributed mode: say --distributed too")
    if eventlogs is not None:  # now, and not when all has been checked
        _make_folder(eventlogs)
    run: Callable[..., tlc.Result] = functools.partial(tlc.run, workers=workers)
    if distributed:
        on_ready = None if host in (None, "127.0.0.1") else _invite
        run = functools.partial(tlc.run_distributed, workers=workers, host=host or "127.0.0.1", on_ready=on_ready)
    outcomes: dict[str, mc.Outcome] = {}
    error: tlc.TLCError | None = None
    with ended_by_signals(), _model_progress(len(chosen)) as shown:
        try:
            for outcome in mc.check_models(chosen, at_a_time=1 if distributed else jobs, run=run, on_progress=shown):
                outcomes[outcome.model.name] = outcome
                shown.end(outcome.model)
        except tlc.TLCError as why:
            error = why
    checked = [outcomes[model.name] for model in chosen if model.name in outcomes]
    if checked:
        show_table(mc.HEADINGS, (outcome.row() for outcome in checked), [not each.as_expected for each in checked])
    for outcome in checked:
        if outcome.result.trace and (counterexample or eventlogs or states or not outcome.as_expected):
            try:
                for line in outcome.story(eventlogs, states):
                    say(line)
            except OSError as why:
                raise _cannot_write(eventlogs, why) from None
    if error:
        complain(f"error: {error}")
        return 2
    different = [outcome for outcome in checked if not outcome.as_expected]
    for outcome in different:
        say(f"NOT AS EXPECTED: {outcome.model.name} {outcome.finding}; expected: {outcome.model.expectation}")
    say(f"{len(checked)} checked, {len(different) or 'all'} {'NOT ' if different else ''}as expected")
    return 1 if different else 0


def _make_folder(name: str) -> None:
    try:
        Path(name).mkdir(parents=True, exist_ok=True)
    except OSError as why:
        raise _cannot_write(name, why) from None


def _cannot_write(folder: str | None, why: OSError) -> click.ClickException:
    return click.ClickException(f"{folder}: cannot be written: {why.strerror}")


def _invite(command: str) -> None:
    complain(f"a worker on another machine: {command}")


class _Models:
    """The models that are being checked, on a terminal."""

    def __init__(self, progress: Progress | None, count: int) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}
        self._all = progress.add_task(f"{count} models", total=count) if progress else TaskID(0)

    def __call__(self, model: mc.Model, generated: int, distinct: int) -> None:
        if self._progress:
            if model.name not in self._tasks:
                self._tasks[model.name] = self._progress.add_task(model.name, total=None)
            said = f"{model.name}: {distinct:,} states" if distinct else model.name
            self._progress.update(self._tasks[model.name], description=said)

    def end(self, model: mc.Model) -> None:
        if self._progress:
            self._progress.remove_task(self._tasks[model.name])
            self._progress.advance(self._all)


@contextlib.contextmanager
def _model_progress(count: int) -> Iterator[_Models]:
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Models(None, count)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, redirect_stdout=sys.stdout.isatty()) as progress:
        yield _Models(progress, count)
