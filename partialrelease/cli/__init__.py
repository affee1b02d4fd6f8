"""The command line. Each command is a module of this package, which is imported when the command is used.

Exit status: 0 fine, 1 violations or differences found, 2 bad input or usage.
"""

from __future__ import annotations

import gc
import io
import sys
from importlib import import_module
from typing import Final

import click

from .. import __version__
from ._output import cannot_print, complain

__all__ = ["main"]

_COMMANDS: Final = ("check", "explain", "model-check", "compare", "trace-check", "conform")


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(import_module(f".{name}", __name__), name)
        return command


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="partialrelease")
def cli() -> None:
    """Early, partial release of a job's ranks: check and explain the eventlogs of Flux jobs, and the specification."""


def main() -> None:
    """The command's entry point."""
    if sys.stdout is None:
        complain("error: standard output is closed")
        sys.exit(2)
    gc.disable()  # what is checked has no cycles, and most of it is short-lived: collecting took a tenth of the time
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # whatever a log says can be printed
    try:
        status = cli(standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except click.exceptions.Abort:
        complain("interrupted")
        sys.exit(130)
    except OSError as error:
        cannot_print(error)
    sys.exit(status)
