"""``llmd cp``: gives a model a second name."""

from __future__ import annotations

import click

from llmd.cli.completion.names import model_names
from llmd.cli.composition import build_store
from llmd.cli.examples import examples
from llmd.cli.this_machine import local_settings


@click.command(epilog=examples("llmd cp Qwen/Qwen3-0.6B small", "llmd cp ~/models/mine mine"))
@click.argument("model", shell_complete=model_names)
@click.argument("name")
def command(*, model: str, name: str) -> None:
    """Give MODEL the further name NAME. No files are copied.

    The copy of a pulled model stays as it is when MODEL is pulled again or removed. The copy of your own
    directory or GGUF file reads its files where they are, and has the settings of MODEL.
    """
    build_store(local_settings(None, "models").directories).copy(model, name)
