"""Read a model's configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from llmd.models.model_source import find_source


def read_config(directory: Path) -> dict[str, Any]:
    """Return the configuration of the model in ``directory``, with the field names of transformers.

    Raises:
        NotFoundError: there is no such directory.
        CheckpointError: the file is missing, or `llmd.models.json_file.read_object` refuses it.
        UnsupportedModelError: it cannot be expressed in those fields.
    """
    return find_source(directory).read_config()
