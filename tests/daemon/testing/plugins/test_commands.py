"""A command must load and have help."""

from __future__ import annotations

import click

from llmd.api.plugins import Command
from llmd.testing.conformance import CaseResult
from llmd.testing.plugins.commands import check_command, fault


class _Broken(click.Command):
    def get_help(self, ctx: click.Context) -> str:
        raise click.ClickException("no help")


def test_a_command_with_help_passes() -> None:
    (result,) = check_command(Command("made", "Make.", lambda: click.Command("made")))
    assert result == CaseResult("command made: loads and shows its help", None)


def test_what_is_no_command_or_has_no_help_fails() -> None:
    assert fault(Command("made", "Make.", lambda: print)).startswith("load returned a builtin_function")
    assert "no help" in fault(Command("made", "Make.", lambda: _Broken("made")))
