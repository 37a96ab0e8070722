"""``llmd rm``: deletes models that llmd pulled, copied or derived."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from llmd.api.byte_size import format_bytes
from llmd.cli.completion.names import model_names
from llmd.cli.composition import build_store
from llmd.cli.examples import examples
from llmd.cli.output import show_json
from llmd.cli.settings import JSON
from llmd.cli.this_machine import local_settings
from llmd.registry.packed_weights import PackedWeightFiles
from llmd.registry.spools import Spools

if TYPE_CHECKING:  # `llmd --help` imports no store
    from llmd.registry.store import Store


@click.command(epilog=examples("llmd rm Qwen/Qwen3-0.6B", "llmd rm small org/model@v1.0 --yes"))
@click.argument("models", nargs=-1, required=True, metavar="MODEL…", shell_complete=model_names)
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@JSON
def command(*, models: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Remove models that were pulled, copied or derived, by their full names.

    Files that another model needs are kept, and a loaded model is not removed. Files that llmd did not
    download are never deleted.
    """
    directories = local_settings(None, "models").directories
    store = build_store(directories)
    if not yes and not as_json and sys.stdin.isatty():
        click.confirm(f"remove {', '.join(models)}?", abort=True, err=True)
    freed = {name: remove(store, name) for name in models}
    Spools(directories.cache).sweep()
    PackedWeightFiles(directories.cache).sweep()
    if as_json:
        show_json({"removed": [{"name": name, "freed_bytes": bytes_} for name, bytes_ in freed.items()]})
        return
    for name, num_bytes in freed.items():
        click.echo(f"removed {name}, freed {format_bytes(num_bytes)}", err=True)


def remove(store: Store, name: str) -> int:
    """Remove one model; return the bytes freed (0 for a derived model, which is tiny)."""
    if (derived := store.derived.find(name)) is not None:
        store.derived.remove(derived[0])
        return 0
    return store.pulled_models.remove(name)
