"""The table of subcommands leads to commands."""

from __future__ import annotations

import click
import pytest

from llmd.cli.subcommands import ALIASES, SUBCOMMANDS


@pytest.mark.parametrize("subcommand", SUBCOMMANDS.values(), ids=SUBCOMMANDS)
def test_every_verb_loads_a_command(subcommand: object) -> None:
    assert hasattr(subcommand, "load")
    assert isinstance(subcommand.load(), click.Command)


def test_no_alias_hides_a_verb() -> None:
    assert not ALIASES.keys() & SUBCOMMANDS.keys()
