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
    """Copy MODEL to NAME. The copy stays unchanged when MODEL is pulled again or removed.

    Copying a pulled model takes no extra disk space; the files of your own directory or GGUF file are copied.
    """
    store = build_store(local_settings(None, "models").directories)
    store.pulled_models.copy(store.find(model, allow_path=True).directory, name)
