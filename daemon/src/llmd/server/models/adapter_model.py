"""LoRA adapters as models: each has a name of its own, and the engine of its model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from llmd.api.errors import ConfigError
from llmd.config import Settings
from llmd.config.adapter_settings import all_adapters
from llmd.registry.derived import DerivedModel
from llmd.registry.names import check_name
from llmd.registry.short_names import LATEST


class AdapterModel(DerivedModel, frozen=True):
    """A model with an adapter. Unlike other derived models, it is in the settings and in no file."""

    adapter: str = ""
    """Directory of the adapter."""


Adapters = Mapping[str, AdapterModel]
"""Adapters by name."""


def adapter_models(settings: Settings) -> Adapters:
    """Return the adapters of the settings.

    Raises:
        ConfigError: an entry is malformed, or two adapters have the same name.
    """
    return {
        name: AdapterModel(model, _created(directory), adapter=directory)
        for name, (model, directory) in all_adapters(settings).items()
    }


def find_adapter(adapters: Adapters, asked: str) -> tuple[str, AdapterModel] | None:
    """Return the adapter of exactly this name, with or without ``:latest``."""
    for name in (asked, asked.removesuffix(LATEST)):
        if name in adapters:
            return name, adapters[name]
    return None


def check_names(adapters: Adapters, taken: Mapping[str, object] | set[str]) -> None:
    """Check that adapters have names that models could have, and no adapter that of a model or an alias.

    Raises:
        ConfigError: one has such a name.
        RequestError: a name is not valid.
    """
    for name in adapters:
        check_name(name, "adapter")
        if name in taken:
            raise ConfigError(
                f"the adapter {name} has the name of a model",
                hint="give the adapter another name: requests choose both by their names",
            )


def _created(directory: str) -> float:
    try:
        return Path(directory).stat().st_mtime
    except OSError:  # the load of the model says what is wrong
        return 0.0
