"""The command greets."""

from __future__ import annotations

from click.testing import CliRunner

from llmd_command_example.plugin import llmd_commands


def test_greets() -> None:
    (described,) = llmd_commands()
    assert CliRunner().invoke(described.load(), ["Ada"]).output == "Hello, Ada!\n"
