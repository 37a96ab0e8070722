"""What kind of model lies in a directory: where its configuration is, and how its tensors are stored and named."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from pathlib import Path
from typing import Any, Protocol

from llmd.api.errors import NotFoundError
from llmd.api.plan import ModelPlan
from llmd.models.checkpoint import Checkpoint
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

    def open_checkpoint(self, *, mapper: Mapper = map_file) -> Checkpoint:
        """The tensors under the names that they are stored by. The caller closes it.

        Raises:
            CheckpointError: a file is missing, damaged or contradicts another.
        """
        ...

    def with_stored_names(self, plan: ModelPlan, stored: Container[str]) -> ModelPlan:
        """A plan for that configuration, its tensors under the names by which ``stored`` has them."""
        ...


KINDS: Sequence[Callable[[Path], ModelSource | None]] = (HuggingFaceSource.find, MetaSource.find)
"""Each finds the configuration of its kind in a directory; where there are several, the first with weights counts."""


def find_source(directory: Path) -> ModelSource:
    """The model in a directory. One that has none is answered with the kind whose errors say what is missing.

    Raises:
        NotFoundError: there is no such directory.
    """
    if not directory.is_dir():
        raise NotFoundError(
            f"{directory} is not a directory", hint="give the directory that holds config.json"
        )
    found = [source for find in KINDS if (source := find(directory)) is not None]
    complete = [source for source in found if source.has_weights]
    return next(iter(complete or found), HuggingFaceSource(directory))
