"""Write a model as a directory of safetensors, as transformers does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llmd.api.errors import UnsupportedModelError
from llmd.api.plan import ModelPlan
from llmd.api.tensors import Format
from llmd.conversion.formats import Formats, formats_of_directory
from llmd.conversion.output_plan import OutputPlan, Source, new_tensors, rotating
from llmd.conversion.tensor_map import MappedTensor
from llmd.conversion.text_files import text_files
from llmd.models.gguf.source import GgufSource
from llmd.models.hugging_face import CONFIG_FILE, HuggingFaceSource
from llmd.models.safetensors_writer import safetensors_layout
from llmd.models.shards import SINGLE_FILE

TORCH_DTYPES: Mapping[Format, str] = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}
OLDER, NEWER = "torch_dtype", "dtype"
"""The field for the dtype of the weights: in transformers 4, and in later versions."""
INTERLEAVED, ORIGINAL_LEN = "rope_interleave", "original_max_position_embeddings"


class DirectoryTarget:
    """The `llmd.conversion.output_plan.Target` of directories."""

    def plan(self, source: Source) -> ModelPlan:
        """Return the plan with RoPE as in transformers.

        A model for images or audio is refused: its configuration would describe parts that are not written.
        """
        if source.plan.left_out and isinstance(source.form, HuggingFaceSource):
            raise UnsupportedModelError(
                f"{source.path}: the model also processes images or audio, but llmd converts only text models",
                hint="give a TARGET that ends in .gguf: such files contain only the text part",
            )
        return rotating(source.plan, interleaved=False)

    def formats(
        self, source: Source, tensor_map: Mapping[str, MappedTensor], quant: Format | None
    ) -> Formats:
        narrows = isinstance(source.form, GgufSource)
        return formats_of_directory(source.model.checkpoint, tensor_map, quant, narrows=narrows)

    def output(
        self, source: Source, plan: ModelPlan, tensor_map: Mapping[str, MappedTensor], formats: Formats
    ) -> OutputPlan:
        tensors = new_tensors(tensor_map, formats.by_name)
        largest = max(tensors, key=lambda tensor: tensor.num_bytes)
        config = config_of(source, largest.format)
        files = text_files(source.path) | {CONFIG_FILE: json.dumps(config, indent=2).encode()}
        return OutputPlan(safetensors_layout(tensors), tensors, files)

    def weights(self, path: Path) -> Path:
        return path / SINGLE_FILE


def config_of(source: Source, weights: Format) -> dict[str, Any]:
    """Return the configuration of the directory for weights of this format; RoPE is no longer interleaved."""
    config = {key: value for key, value in source.model.config.items() if key != INTERLEAVED}
    if isinstance(source.form, GgufSource) and config["model_type"] == "phi3":
        config = _with_rope_of_phi3(config)
    return {**config, NEWER if NEWER in config else OLDER: TORCH_DTYPES[weights]}


def _with_rope_of_phi3(config: dict[str, Any]) -> dict[str, Any]:
    """Keep only the longrope fields that Phi-3 in transformers accepts; it computes the attention factor."""
    stated = config["rope_scaling"]
    if not stated or "long_factor" not in stated:
        return config
    lists = {name: stated[name] for name in ("short_factor", "long_factor")}
    trained = {name: stated[name] for name in (ORIGINAL_LEN,) if stated.get(name)}
    return {**config, **trained, "rope_scaling": {"type": "longrope", **lists}}
