"""From what a caller names to a model that is loaded."""

from __future__ import annotations

import os
from pathlib import Path

from llmd.api.messages import Load, Loading
from llmd.builtin.guide import guide_directory
from llmd.config import Directories
from llmd.engine.composition import loader_for
from llmd.engine.loading import LoadedModel
from llmd.registry.store import Store
from llmd.registry.stored_model import StoredModel


def find_model(name: str, directories: Directories) -> StoredModel:
    """The model of a name or directory.

    Raises:
        NotFoundError: there is none; the message has the nearest names.
    """
    return Store(directories.models, {"guide": guide_directory()}).find(name, allow_path=True)


def user_directories() -> Directories:
    """The folders of the user who runs this process."""
    return Directories.of(os.environ)


def load_stored(message: Load, cache: Path) -> LoadedModel:
    """Load with the installed plugins; ``cache`` keeps what probes find.

    Raises:
        LlmdError: the model, the device or the memory does not allow it.
    """
    return loader_for(cache)(message, _unheard)


def _unheard(_progress: Loading) -> None:
    """Nobody watches how far loading is."""
