"""``llmd config schema``: the JSON Schema of ``config.toml``."""

from __future__ import annotations

import json

import click

from llmd.cli.examples import examples


@click.command("schema", epilog=examples("llmd config schema > ~/.config/llmd/config.schema.json"))
def command() -> None:
    """Print the JSON Schema of config.toml, for editors.

    Editors with a TOML extension use it if the first line of config.toml is `#:schema ./config.schema.json`.
    """
    from llmd.config.json_schema import json_schema

    click.echo(json.dumps(json_schema(), indent=2, ensure_ascii=False))
