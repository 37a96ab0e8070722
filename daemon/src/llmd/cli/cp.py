"""``llmd cp``: another name for a model."""

from __future__ import annotations

import click

from llmd.cli.composition import build_store
from llmd.cli.examples import examples
from llmd.cli.settings import read_settings


@click.command(epilog=examples("llmd cp Qwen/Qwen3-0.6B small", "llmd cp ~/models/mine mine"))
@click.argument("model")
@click.argument("name")
def command(*, model: str, name: str) -> None:
    """Give MODEL a second NAME, of its own: it stays what it is when MODEL is pulled anew or removed.

    A model that was pulled takes no more room on the disk for it; a directory or GGUF file of yours is copied.
    """
    store = build_store(read_settings(None).directories)
    store.pulled_models.copy(store.find(model, allow_path=True).directory, name)
