"""Printing: tables, progress, lines that nothing in a log can make do anything to a terminal; how a command ends."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import NoReturn, cast

import click
import msgspec

from ..report import plain


def count_of(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def say(line: str) -> None:
    """Print a line for people, in which a log may have any say."""
    print_text(f"{plain(line)}\n")


def print_text(text: str) -> None:
    """Print, buffered, as ``click.echo`` is not."""
    try:
        sys.stdout.write(text)
    except OSError as error:
        cannot_print(error)


def print_json(value: object) -> None:
    print_text(msgspec.json.encode(value).decode() + "\n")


def cannot_print(error: OSError) -> NoReturn:
    """End: nobody reads on (which is no error of ours), or the output has no room."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or else it would fail again at exit
    if isinstance(error, BrokenPipeError):
        sys.exit(141)
    complain(f"error: standard output: {error.strerror}")
    sys.exit(2)


def complain(message: str) -> None:
    with contextlib.suppress(OSError):
        click.echo(plain(message), err=True)


def warn(message: str) -> None:
    complain(f"warning: {message}")


def show_table(headings: Iterable[str], rows: Iterable[Iterable[str]], problems: Iterable[bool] = ()) -> None:
    """Print a table; red, on a terminal, the rows that are problems."""
    from rich.console import Console  # here, as below, so that who needs no rich starts no later
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for cells, problem in itertools.zip_longest(rows, problems, fillvalue=False):
        table.add_row(*map(Text, cast(Iterable[str], cells)), style="red" if problem else None)
    console = Console()
    if not console.width or not (console.is_terminal or "COLUMNS" in os.environ):
        console = Console(width=160)
    with console.capture() as capture:
        console.print(table)
    print_text(capture.get())


def _on_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


@contextlib.contextmanager
def progress(files: tuple[str, ...]) -> Iterator[Callable[[int], object] | None]:
    """A progress bar on a terminal, nothing elsewhere."""
    sizes = [os.path.getsize(file) for file in files if os.path.isfile(file)]
    if not _on_terminal() or len(sizes) < len(files):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("checking"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    # Output goes around the bar if it goes to the terminal too; elsewhere it must not be touched.
    around = sys.stdout.isatty()
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=around) as progress:
        task = progress.add_task("checking", total=sum(sizes))
        yield lambda count: progress.advance(task, count)


@contextlib.contextmanager
def status_line() -> Iterator[Callable[[str], object]]:
    """A line on a terminal that says what is going on, nothing elsewhere."""
    if not _on_terminal():
        yield lambda line: None
        return
    from rich.console import Console

    with Console(stderr=True).status("TLA+") as status:
        yield status.update


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Leave in order, so that child processes end too, when told to terminate or when the terminal is gone."""

    def leave(number: int, _: object) -> NoReturn:
        complain(f"ended by {signal.Signals(number).name}")
        sys.exit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
