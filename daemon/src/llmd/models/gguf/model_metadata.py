"""The metadata of a model, for those who read more of it than the configuration."""

from __future__ import annotations

from pathlib import Path

from llmd.models.gguf.metadata import Metadata
from llmd.models.gguf.source import GgufSource
from llmd.models.model_source import find_source


def gguf_metadata(path: Path) -> Metadata | None:
    """What the GGUF file of a model says about it; None where the model has another form.

    Raises:
        NotFoundError: there is no such directory or file.
        CheckpointError: the file is damaged, or one of several has to be chosen.
    """
    source = find_source(path)
    return source.read_metadata() if isinstance(source, GgufSource) else None
