"""Checks of commands: they load and have help."""

from __future__ import annotations

from collections.abc import Iterator

from llmd.api.plugins import Command
from llmd.testing.plugins.results import Result, case


def check_command(command: Command) -> Iterator[Result]:
    """Yield the results for a subcommand. It is not run."""
    yield case(f"command {command.name}: loads and shows its help", lambda: fault(command))


def fault(command: Command) -> str:
    """Return what is wrong with the command."""
    import click
    from click.testing import CliRunner

    loaded = command.load()
    if not isinstance(loaded, click.Command):
        return f"load returned a {type(loaded).__name__}, not a click.Command"
    shown = CliRunner().invoke(loaded, ["--help"])
    return "" if shown.exit_code == 0 else f"--help ends with {shown.exit_code}: {shown.output.strip()}"
