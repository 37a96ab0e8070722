"""The table of verbs leads to commands."""

from __future__ import annotations

import click
import pytest

from llmd.cli.verbs import ALIASES, VERBS


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_every_verb_loads_a_command(verb: object) -> None:
    assert hasattr(verb, "load")
    assert isinstance(verb.load(), click.Command)


def test_no_alias_hides_a_verb() -> None:
    assert not ALIASES.keys() & VERBS.keys()
