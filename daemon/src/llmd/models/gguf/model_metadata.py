"""Read the metadata of a GGUF model beyond its configuration."""

from __future__ import annotations

from pathlib import Path

from llmd.models.gguf.metadata import Metadata
from llmd.models.gguf.source import GgufSource
from llmd.models.model_source import find_source


def gguf_metadata(path: Path) -> Metadata | None:
    """Return the metadata of a model's GGUF file; None if the model has another form.

    Raises:
        NotFoundError: there is no such directory or file.
        CheckpointError: the file is damaged, or the directory holds several models.
    """
    source = find_source(path)
    return source.read_metadata() if isinstance(source, GgufSource) else None
