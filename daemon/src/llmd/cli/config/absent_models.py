"""Settings that name models that are not here: a name may be mistyped, or the model is pulled later."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from llmd.api.errors import CheckpointError, ConfigError, NotFoundError

if TYPE_CHECKING:
    from llmd.config import Origin
    from llmd.config.setting_values import SettingValue
    from llmd.registry.store import Store

Models = Mapping[str, Iterable["Origin"]]
"""The origins of the settings of single models, by model."""


def absent_models(models: Models, store: Store) -> list[ConfigError]:
    """Return what to say about each model that has settings and is not in the store, with its first line."""
    known = store.names()
    return [_absent(name, models[name], known) for name in sorted(models.keys() - known)]


def models_of(values: Iterable[SettingValue]) -> Models:
    """Return the models that have settings among these values."""
    models: dict[str, list[Origin]] = {}
    for given in values:
        if given.model is not None:
            models.setdefault(given.model, []).append(given.origin)
    return models


def absent_loads(origins: Mapping[str, Origin], store: Store) -> list[ConfigError]:
    """Return what to say about each model that is to be loaded at the start and is not found. ``origins`` are
    the settings that are set, by name.
    """
    load = origins.get("server.load")
    if load is None:
        return []
    aliases = {one.partition("=")[0] for one in _texts(origins.get("server.alias"))}
    names = [name for name in _texts(load) if name not in aliases]
    return [error for name in names if (error := _unfound(name, load, store)) is not None]


def _texts(origin: Origin | None) -> list[str]:
    """Return the texts of a list; a file may hold one text. What is no list is an error of its own."""
    from llmd.config.values import listed

    value = origin.value if origin else ()
    given = listed(value) if isinstance(value, str) else value
    return [one for one in given if isinstance(one, str)] if isinstance(given, (list, tuple)) else []


def _unfound(name: str, load: Origin, store: Store) -> ConfigError | None:
    try:
        store.find(name, allow_path=True)
    except (NotFoundError, CheckpointError) as error:
        return load.placed(ConfigError(f"{load.place}: load: {error.message}", hint=error.hint))
    return None


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
    return first.placed(error) if first else error
