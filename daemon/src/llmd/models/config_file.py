"""``config.json``: what a model directory says about itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from llmd.api.errors import NotFoundError
from llmd.api.plugins import Config
from llmd.models.json_file import read_object

CONFIG_FILE = "config.json"
MAX_CONFIG_BYTES = 16_000_000


def read_config(directory: Path) -> dict[str, Any]:
    """The configuration of the model in ``directory``.

    Raises:
        NotFoundError: there is no such directory.
        CheckpointError: ``config.json`` is missing or `llmd.models.json_file.read_object` refuses it.
    """
    if not directory.is_dir():
        raise NotFoundError(
            f"{directory} is not a directory", hint="give the directory that holds config.json"
        )
    return read_object(directory / CONFIG_FILE, max_bytes=MAX_CONFIG_BYTES)


def named_class(config: Config) -> str:
    """The first class that a configuration names, empty where it names none."""
    names = config.get("architectures")
    return str(names[0]) if isinstance(names, list) and names else ""
