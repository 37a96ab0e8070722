"""A model in Meta's layout, or Mistral's, which is the same but for some fields."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path
from typing import Any, Self

import msgspec

from llmd.api.embedding import Embedding
from llmd.api.errors import CheckpointError
from llmd.api.plan import LeftOut, ModelPlan
from llmd.api.plugins import Config
from llmd.models.checkpoint import Checkpoint
from llmd.models.files import is_named
from llmd.models.mapped_file import Mapper, map_file
from llmd.models.meta.config import to_config
from llmd.models.meta.joined_file import EMBEDDING, open_joined
from llmd.models.meta.params_file import PARAMS_FILE, read_params
from llmd.models.meta.tensor_names import meta_name
from llmd.models.meta.weight_files import find_weights, has_weights
from llmd.models.stored_names import renamed

VISION = LeftOut(
    "vision", ("vision_encoder.", "vision_language_adapter.", "pre_mm_projector_norm.", "patch_merger.")
)


class MetaSource(msgspec.Struct, frozen=True):
    """`llmd.models.model_source.ModelSource` of such a directory."""

    directory: Path

    @classmethod
    def find(cls, directory: Path) -> Self | None:
        """The model in ``directory``, None where there is no ``params.json``."""
        return cls(directory) if is_named(directory / PARAMS_FILE) else None

    @property
    def config_file(self) -> Path:
        return self.directory / PARAMS_FILE

    @property
    def has_weights(self) -> bool:
        return has_weights(self.directory)

    def read_config(self) -> dict[str, Any]:
        """The parameters in the words of transformers. Where they leave the vocabulary open, its size is the embedding's."""
        params = read_params(self.config_file)
        return to_config(params, params.vocab_size if params.vocab_size > 0 else self._num_embeddings())

    def _num_embeddings(self) -> int:
        name = f"{EMBEDDING}.weight"
        with self.open_checkpoint() as checkpoint:
            table = checkpoint.tensors.get(name)
        if table is None or not table.shape:
            raise CheckpointError(
                "vocab_size is open, and there is no embedding to tell it",
                file=str(self.config_file),
                tensor=name,
                hint="copy the weights again from where the model came from",
            )
        return table.shape[0]

    def read_embedding(self, config: Config) -> Embedding | None:
        """Nothing: these models generate."""
        return None

    def open_checkpoint(self, *, mapper: Mapper = map_file) -> Checkpoint:
        """The single file, the shards of an index, or pieces that lay on several devices, joined."""
        shards, parallel = find_weights(self.directory)
        return open_joined(shards, mapper=mapper) if parallel else Checkpoint.open(shards, mapper=mapper)

    def with_stored_names(self, plan: ModelPlan, stored: Container[str]) -> ModelPlan:
        """The plan with Meta's names, without what Mistral's models see with."""
        return msgspec.structs.replace(renamed(plan, meta_name), left_out=(VISION,))
