"""The `llmd.models.model_source.ModelSource` of GGUF files."""

from __future__ import annotations

import functools
from collections.abc import Container
from pathlib import Path
from typing import Any, Self

import msgspec

from llmd.api.embedding import Embedding, Pooling
from llmd.api.errors import CheckpointError
from llmd.api.plan import ModelPlan
from llmd.api.plugins import Config
from llmd.models.adapters.adapter import AdapterForm
from llmd.models.checkpoint import Checkpoint
from llmd.models.embedding_config import default_embedding
from llmd.models.files import Stamps, list_names, stamps
from llmd.models.gguf.adapter_form import GgufForm
from llmd.models.gguf.config import pooling, read_config
from llmd.models.gguf.fields import architecture_name
from llmd.models.gguf.gguf_file import read_gguf_metadata
from llmd.models.gguf.gguf_model import GgufModel
from llmd.models.gguf.metadata import Metadata
from llmd.models.gguf.model_files import is_gguf, model_files
from llmd.models.gguf.tensor_names import as_stored
from llmd.models.mapped_file import Mapper, map_file
from llmd.models.shards import Shards


class GgufSource(msgspec.Struct, frozen=True):
    """The source of a GGUF model, given its directory, its file, or one of its parts."""

    path: Path

    @classmethod
    def find(cls, path: Path) -> Self | None:
        """Return the model; None if there is no GGUF file."""
        if not path.is_dir():
            return cls(path) if is_gguf(path.name) else None
        try:
            return cls(path) if any(map(is_gguf, list_names(path))) else None
        except CheckpointError:  # not readable: a source with fixed file names reports it
            return None

    @property
    def config_file(self) -> Path:
        return model_files(self.path)[0]

    @property
    def has_weights(self) -> bool:
        return True

    def read_config(self) -> dict[str, Any]:
        """Return the metadata, translated to the fields of ``config.json``."""
        return dict(self._stated.config)

    def read_metadata(self) -> Metadata:
        """Return the metadata of the first file.

        Raises:
            CheckpointError: the file is damaged.
        """
        return read_gguf_metadata(self.config_file)

    def read_embedding(self, config: Config) -> Embedding | None:
        """Return the pooling that the file states; None if it states none."""
        stated = self._stated.pooling
        if stated is None:
            return None
        return msgspec.structs.replace(default_embedding(config, causal=False), poolings=(stated,))

    def open_checkpoint(self, *, mapper: Mapper = map_file) -> Checkpoint:
        """Open the tensors of all parts."""
        model = GgufModel.open(model_files(self.path), mapper=mapper)
        paths = tuple(file.path for file in model.files)
        return Checkpoint(Shards(model.path, paths), {file.path.name: file for file in model.files})

    def adapter_form(self) -> AdapterForm:
        """Return the converter's names and order of rows."""
        return GgufForm(self._stated.architecture, self._stated.config)

    def with_stored_names(self, plan: ModelPlan, stored: Container[str]) -> ModelPlan:
        return as_stored(plan, self._stated.architecture)

    @property
    def _stated(self) -> _Stated:
        return _read(stamps(model_files(self.path)))


class _Stated(msgspec.Struct, frozen=True):
    """What a model states about itself, without the vocabulary."""

    architecture: str
    config: dict[str, Any]
    pooling: Pooling | None


@functools.lru_cache(maxsize=64)
def _read(files: Stamps) -> _Stated:
    """Read and cache the configuration: it is needed often, and its header contains the whole vocabulary."""
    with GgufModel.open(file.path for file in files) as model:
        return _Stated(architecture_name(model.metadata), read_config(model), pooling(model.metadata))
