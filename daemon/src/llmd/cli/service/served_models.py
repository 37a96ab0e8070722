"""Checks that a service can find its models, before anything is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from llmd.api.errors import ModelError, NotFoundError

if TYPE_CHECKING:
    from llmd.config import Settings
    from llmd.registry.store import Store


def check_serves(models: Sequence[str], settings: Settings, *, is_system: bool = False) -> None:
    """Check that a daemon with these settings would find its models and those of its aliases.

    Raises:
        NotFoundError: there is no such model.
        ModelError: it cannot be loaded.
        ConfigError: an alias does not name its model.
        RequestError: an alias is not a valid model name.
    """
    from llmd.cli.composition import build_store
    from llmd.cli.serve import named_models, read_aliases

    store = build_store(settings.directories)
    try:
        for model in models:
            _check_usable(model, store)
        names = named_models(models, store)
        read_aliases(settings.config.server.models.alias, tuple(names), store)
    except NotFoundError as error:
        if not is_system:
            raise
        # The models that `llmd list` shows are those of the user who types the command.
        folder = settings.directories.models
        hint = f"this service has its own models, in {folder}: copy the model there, or give its path"
        raise NotFoundError(error.message, hint=hint) from error


def _check_usable(model: str, store: Store) -> None:
    found = store.find(model, allow_path=True)
    if found.reason:
        raise ModelError(
            f"the model {model} cannot be loaded: {found.reason}",
            hint="fix its files, or name another model; `llmd doctor models` checks all",
        )
