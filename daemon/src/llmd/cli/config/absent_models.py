"""Settings of models that are not on this machine: a name may be mistyped, or the model is pulled later."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from llmd.api.errors import ConfigError

if TYPE_CHECKING:
    from llmd.config import Directories, Origin

Models = Mapping[str, Iterable["Origin"]]
"""The origins of the settings of single models, by model."""


def absent_models(models: Models, directories: Directories) -> list[ConfigError]:
    """Return what to say about each model that has settings and is not in the store, with its first line."""
    from llmd.cli.composition import build_store

    store = build_store(directories)
    known = [*store.directories(), *store.derived.names()]
    return [_absent(name, models[name], known) for name in sorted(models.keys() - set(known))]


def models_of_file(path: Path, text: str) -> Models:
    """Return the models that have settings in a file with this text; its errors are left to others."""
    from llmd.config.config_file import values_of_text

    models: dict[str, list[Origin]] = {}
    for given in values_of_text(path, text, lambda _error: None):
        if given.model is not None:
            models.setdefault(given.model, []).append(given.origin)
    return models


def _absent(name: str, origins: Iterable[Origin], known: Iterable[str]) -> ConfigError:
    first = min(
        (origin for origin in origins if origin.line is not None), key=lambda one: one.line or 0, default=None
    )
    place = f"{first.place}: " if first else ""
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"the nearest name is {near[0]}; " if near else ""
    error = ConfigError(
        f"{place}settings for {name}, but there is no such model on this machine",
        hint=f"{hint}`llmd list` shows the names, `llmd pull {name}` fetches a model",
    )
    error.line = first.line if first else None
    return error
