"""Finds and loads the model that a caller names."""

from __future__ import annotations

import os

from llmd.api.messages import Load, Loading
from llmd.builtin.guide import guide_directory
from llmd.config import Directories
from llmd.engine.composition import loader_for
from llmd.engine.loading import LoadedModel
from llmd.registry.derived import DerivedModel
from llmd.registry.store import Store
from llmd.registry.stored_model import StoredModel


def find_model(name: str, directories: Directories) -> tuple[StoredModel, DerivedModel | None]:
    """Return the model with this name or in this directory, and what it changes if it is a derived one.

    Raises:
        NotFoundError: there is no such model; the message suggests similar names.
    """
    store = Store(directories.models, {"guide": guide_directory()})
    found = store.find(name, allow_path=True)
    return found, store.record_of(found)


def user_directories() -> Directories:
    """Return the directories of the user who runs this process."""
    return Directories.of(os.environ)


def load_stored(message: Load, directories: Directories) -> LoadedModel:
    """Load a model with the installed plugins, the probe results and the choices of a user.

    Raises:
        LlmdError: the model or the device cannot be used, or the memory is too small.
    """
    return loader_for(directories.cache, directories.plugin_choices)(message, _unheard)


def _unheard(_progress: Loading) -> None:
    """Ignore the progress of loading."""
