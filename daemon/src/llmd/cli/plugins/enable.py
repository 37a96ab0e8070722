"""``llmd plugins enable``: uses a plugin again that was disabled."""

from __future__ import annotations

import click

from llmd.cli.completion.names import disabled_names
from llmd.cli.examples import examples
from llmd.cli.plugins.choosing import choose
from llmd.cli.settings import JSON


@click.command(epilog=examples("llmd plugins enable ollama"))
@click.argument("name", shell_complete=disabled_names)
@JSON
def command(*, name: str, as_json: bool) -> None:
    """Use a plugin again that was disabled. NAME is a name that `llmd plugins list` shows.

    A running daemon uses it after `llmd reload`.
    """
    choose(name, enabled=True, as_json=as_json)
