"""``llmd plugins disable``: leaves a plugin installed, but does not use it."""

from __future__ import annotations

import click

from llmd.cli.completion.names import plugin_names
from llmd.cli.examples import examples
from llmd.cli.plugins.choosing import choose
from llmd.cli.settings import JSON


@click.command(epilog=examples("llmd plugins disable ollama"))
@click.argument("name", shell_complete=plugin_names)
@JSON
def command(*, name: str, as_json: bool) -> None:
    """Do not use a plugin, but leave it installed. NAME is a name that `llmd plugins list` shows.

    A running daemon stops using it after `llmd reload`; models that are loaded keep their devices.
    `llmd plugins enable NAME` uses it again.
    """
    choose(name, enabled=False, as_json=as_json)
