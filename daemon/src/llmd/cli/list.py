"""``llmd list``: the models on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from llmd.api.byte_size import format_bytes
from llmd.cli.composition import build_store
from llmd.cli.examples import examples
from llmd.cli.output import Column, View, listing_options, show
from llmd.cli.settings import CONFIG
from llmd.cli.this_machine import local_settings
from llmd.registry.stored_model import StoredModel, with_adapter

if TYPE_CHECKING:
    from llmd.config import Settings


def parameters(model: StoredModel) -> str:
    """Format the number of parameters."""
    for unit, scale in (("B", 1e9), ("M", 1e6), ("K", 1e3)):
        if model.num_parameters >= scale:
            return f"{model.num_parameters / scale:.1f}{unit}"
    return str(model.num_parameters) if model.num_parameters else ""


def source(model: StoredModel) -> str:
    """Return a model's origin: its base model, its hub and version, or the user's directory."""
    if model.base:
        return f"derived from {model.base}"
    if model.source:
        return f"{model.source}@{model.commit[:8]}"
    return "built in" if model.builtin else str(model.directory)


COLUMNS = (
    Column[StoredModel]("NAME", lambda model: model.name),
    Column[StoredModel]("ARCH", lambda model: model.architecture),
    Column[StoredModel]("PARAMS", parameters, lambda model: model.num_parameters),
    Column[StoredModel]("FORMAT", lambda model: model.format),
    Column[StoredModel]("SIZE", lambda model: format_bytes(model.size_bytes), lambda model: model.size_bytes),
    Column[StoredModel]("CTX", lambda model: str(model.context_len or ""), lambda model: model.context_len or 0),
    Column[StoredModel]("SOURCE", source),
    Column[StoredModel]("STATE", lambda model: model.reason or "ok"),
)  # fmt: skip


@click.command(epilog=examples("llmd list", "llmd list --sort SIZE --json"))
@listing_options
@CONFIG
def command(*, config_file: Path | None, **view: Any) -> None:
    """List the models on this machine: the built-in guide, and those in `models/` in the data directory.

    LoRA adapters of the configuration file are listed with their models.
    """
    settings = local_settings(config_file, "models")
    store = build_store(settings.directories)
    stored = store.list()
    models = [*stored, *store.list_derived(), *_with_adapters(settings, stored)]
    show(View(**view), "models", models, COLUMNS)


def _with_adapters(settings: Settings, stored: Sequence[StoredModel]) -> list[StoredModel]:
    """Return the models with the LoRA adapters that the tables of single models name."""
    from llmd.config.adapter_settings import all_adapters

    bases = {model.name: model for model in stored}
    return [
        with_adapter(bases[model], name, Path(directory))
        for name, (model, directory) in all_adapters(settings).items()
        if model in bases
    ]
