"""What kind of model lies in a directory: where its configuration is, and how its tensors are stored and named."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from pathlib import Path
from typing import Any, Protocol

from llmd.api.embedding import Embedding
from llmd.api.errors import NotFoundError
from llmd.api.plan import ModelPlan
from llmd.api.plugins import Config
from llmd.models.checkpoint import Checkpoint
from llmd.models.gguf.source import GgufSource
from llmd.models.hugging_face import HuggingFaceSource
from llmd.models.mapped_file import Mapper, map_file
from llmd.models.meta.source import MetaSource


class ModelSource(Protocol):
    """A model in one of the forms that llmd reads. Finding one opens nothing."""

    @property
    def config_file(self) -> Path:
        """The file that holds the configuration."""
        ...

    @property
    def has_weights(self) -> bool:
        """Whether something by the name of this form's weights is there."""
        ...

    def read_config(self) -> dict[str, Any]:
        """The configuration in the words of transformers, whatever words its file has.

        Raises:
            CheckpointError: the file is missing, damaged or contradicts itself.
            UnsupportedModelError: it says something that those words cannot say.
        """
        ...

    def read_embedding(self, config: Config) -> Embedding | None:
        """What is said beside the configuration about how rows become the vector of a text; None where nothing is.

        Raises:
            CheckpointError: it is damaged, or says nothing that could be meant.
            UnsupportedModelError: it asks for what llmd does not compute.
        """
        ...

    def open_checkpoint(self, *, mapper: Mapper = map_file) -> Checkpoint:
        """The tensors under the names that they are stored by. The caller closes it.

        Raises:
            CheckpointError: a file is missing, damaged or contradicts another.
        """
        ...

    def with_stored_names(self, plan: ModelPlan, stored: Container[str]) -> ModelPlan:
        """A plan for that configuration, its tensors under the names by which ``stored`` has them."""
        ...


KINDS: Sequence[Callable[[Path], ModelSource | None]] = (
    HuggingFaceSource.find,
    MetaSource.find,
    GgufSource.find,
)
"""Each finds the configuration of its kind in a directory; where there are several, the first with weights counts."""


def find_source(path: Path) -> ModelSource:
    """The model in a directory, or in a file. A directory that has none is answered with the kind whose errors say what is
    missing.

    Raises:
        NotFoundError: there is neither.
    """
    if not path.is_dir():
        return _in_file(path)
    found = [source for find in KINDS if (source := find(path)) is not None]
    complete = [source for source in found if source.has_weights]
    return next(iter(complete or found), HuggingFaceSource(path))


def _in_file(path: Path) -> ModelSource:
    """The only files that are models by themselves are GGUF files."""
    source = GgufSource.find(path) if path.is_file() else None
    if source is None:
        raise NotFoundError(
            f"{path} is neither a directory nor a GGUF file",
            hint="give the directory that holds config.json, or a file whose name ends in .gguf",
        )
    return source
