"""A model in Meta's layout, or in Mistral's, which differs in a few fields."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path
from typing import Any, Self

import msgspec

from llmd.api.embedding import Embedding
from llmd.api.errors import CheckpointError, UnsupportedModelError
from llmd.api.plan import LeftOut, ModelPlan
from llmd.api.plugins import Config
from llmd.models.adapters.adapter import AdapterForm
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
    """The `llmd.models.model_source.ModelSource` of such a directory."""

    directory: Path

    @classmethod
    def find(cls, directory: Path) -> Self | None:
        """Return the model in ``directory``; None if there is no ``params.json``."""
        return cls(directory) if is_named(directory / PARAMS_FILE) else None

    @property
    def config_file(self) -> Path:
        return self.directory / PARAMS_FILE

    @property
    def has_weights(self) -> bool:
        return has_weights(self.directory)

    def read_config(self) -> dict[str, Any]:
        """Return the configuration. If ``vocab_size`` is not stated, it is the number of embeddings."""
        params = read_params(self.config_file)
        return to_config(params, params.vocab_size if params.vocab_size > 0 else self._num_embeddings())

    def _num_embeddings(self) -> int:
        name = f"{EMBEDDING}.weight"
        with self.open_checkpoint() as checkpoint:
            table = checkpoint.tensors.get(name)
        if table is None or not table.shape:
            raise CheckpointError(
                "vocab_size is not stated, and there is no embedding that shows it",
                file=str(self.config_file),
                tensor=name,
                hint="copy the weights again from where the model came from",
            )
        return table.shape[0]

    def read_embedding(self, config: Config) -> Embedding | None:
        """Return None: these models generate."""
        return None

    def open_checkpoint(self, *, mapper: Mapper = map_file) -> Checkpoint:
        """Open the single file, the shards of an index, or the joined pieces of several devices."""
        shards, parallel = find_weights(self.directory)
        return open_joined(shards, mapper=mapper) if parallel else Checkpoint.open(shards, mapper=mapper)

    def adapter_form(self) -> AdapterForm:
        """Refuse adapters."""
        raise UnsupportedModelError(
            f"{self.config_file}: LoRA adapters name the matrices of transformers, which checkpoints of Meta "
            "and Mistral order differently",
            hint="serve the model from the directory with config.json and safetensors files",
        )

    def with_stored_names(self, plan: ModelPlan, stored: Container[str]) -> ModelPlan:
        """Return the plan with Meta's names; it leaves out the tensors of Mistral's vision encoder."""
        return msgspec.structs.replace(renamed(plan, meta_name), left_out=(VISION,))
