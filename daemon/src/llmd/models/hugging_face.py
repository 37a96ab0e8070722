"""A model as transformers writes it: ``config.json`` and safetensors files."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path
from typing import Any, Self

import msgspec

from llmd.api.embedding import Embedding
from llmd.api.plan import ModelPlan
from llmd.api.plugins import Config
from llmd.models.adapters.adapter import AdapterForm, AsTrained
from llmd.models.checkpoint import Checkpoint
from llmd.models.config_form import ConfigForm
from llmd.models.embedding_config import read_embedding
from llmd.models.files import is_named
from llmd.models.json_file import converted, read_object
from llmd.models.mapped_file import Mapper, map_file
from llmd.models.shards import INDEX_FILE, SINGLE_FILE, find_shards
from llmd.models.stored_names import with_stored_names

CONFIG_FILE = "config.json"
MAX_CONFIG_BYTES = 16_000_000


class HuggingFaceSource(msgspec.Struct, frozen=True):
    """The `llmd.models.model_source.ModelSource` of such a directory."""

    directory: Path

    @classmethod
    def find(cls, directory: Path) -> Self | None:
        """Return the model in ``directory``; None if there is no ``config.json``."""
        return cls(directory) if is_named(directory / CONFIG_FILE) else None

    @property
    def config_file(self) -> Path:
        return self.directory / CONFIG_FILE

    @property
    def has_weights(self) -> bool:
        return any(is_named(self.directory / name) for name in (SINGLE_FILE, INDEX_FILE))

    def read_config(self) -> dict[str, Any]:
        """Return the file's content unchanged, after checking the field types of `ConfigForm`.

        Infinity is allowed: transformers writes it for bounds that do not exist.
        """
        config = read_object(self.config_file, max_bytes=MAX_CONFIG_BYTES, allow_infinity=True)
        converted(config, ConfigForm, file=str(self.config_file))
        return config

    def read_embedding(self, config: Config) -> Embedding | None:
        """Read the files of sentence-transformers, if there are any."""
        return read_embedding(self.directory, config)

    def open_checkpoint(self, *, mapper: Mapper = map_file) -> Checkpoint:
        """Open the single file, or the shards of an index."""
        return Checkpoint.open(find_shards(self.directory), mapper=mapper)

    def adapter_form(self) -> AdapterForm:
        """Return that of adapters themselves."""
        return AsTrained()

    def with_stored_names(self, plan: ModelPlan, stored: Container[str]) -> ModelPlan:
        """Return the plan with the checkpoint's tensor names. See `llmd.models.stored_names`."""
        return with_stored_names(plan, stored)
