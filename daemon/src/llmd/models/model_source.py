"""Detect the form of a model: where its configuration is, and how its tensors are stored and named."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from pathlib import Path
from typing import Any, Protocol

from llmd.api.embedding import Embedding
from llmd.api.errors import NotFoundError
from llmd.api.plan import ModelPlan
from llmd.api.plugins import Config
from llmd.models.adapters.adapter import AdapterForm
from llmd.models.checkpoint import Checkpoint
from llmd.models.gguf.source import GgufSource
from llmd.models.hugging_face import HuggingFaceSource
from llmd.models.mapped_file import Mapper, map_file
from llmd.models.meta.source import MetaSource


class ModelSource(Protocol):
    """A model in one of the forms that llmd reads. Finding one opens no file."""

    @property
    def config_file(self) -> Path:
        """The file that holds the configuration."""
        ...

    @property
    def has_weights(self) -> bool:
        """Whether there are files with the names of this form's weights."""
        ...

    def read_config(self) -> dict[str, Any]:
        """Return the configuration with the field names of transformers, whatever its file uses.

        Raises:
            CheckpointError: the file is missing, damaged or contradicts itself.
            UnsupportedModelError: it states something that those fields cannot express.
        """
        ...

    def read_embedding(self, config: Config) -> Embedding | None:
        """Read how rows become a text's vector, if files other than the configuration state it; else None.

        Raises:
            CheckpointError: such a file is damaged or invalid.
            UnsupportedModelError: it asks for something that llmd does not support.
        """
        ...

    def open_checkpoint(self, *, mapper: Mapper = map_file) -> Checkpoint:
        """Open the tensors under their stored names. The caller closes the checkpoint.

        Raises:
            CheckpointError: a file is missing, damaged or contradicts another.
        """
        ...

    def adapter_form(self) -> AdapterForm:
        """Return how the checkpoint names and orders the matrices that LoRA adapters change.

        Raises:
            CheckpointError: the configuration is damaged.
            UnsupportedModelError: no adapter can be applied to models of this kind.
        """
        ...

    def with_stored_names(self, plan: ModelPlan, stored: Container[str]) -> ModelPlan:
        """Return the plan with its tensor names replaced by those in ``stored``."""
        ...


KINDS: Sequence[Callable[[Path], ModelSource | None]] = (
    HuggingFaceSource.find,
    MetaSource.find,
    GgufSource.find,
)
"""Each finds the configuration of its kind in a directory. If several do, the first with weights is used."""


def find_source(path: Path) -> ModelSource:
    """Return the source of the model in a directory or file.

    A directory without a model is treated as a Hugging Face one, whose errors say what is missing.

    Raises:
        NotFoundError: the path is neither a directory nor a GGUF file.
    """
    if not path.is_dir():
        return _in_file(path)
    found = [source for find in KINDS if (source := find(path)) is not None]
    complete = [source for source in found if source.has_weights]
    return next(iter(complete or found), HuggingFaceSource(path))


def _in_file(path: Path) -> ModelSource:
    """Return the source of a single file, which must be a GGUF file."""
    source = GgufSource.find(path) if path.is_file() else None
    if source is None:
        raise NotFoundError(
            f"{path} is neither a directory nor a GGUF file",
            hint="give the directory that holds config.json, or a file whose name ends in .gguf",
        )
    return source
