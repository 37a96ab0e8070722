"""Write a model as one GGUF file, as llama.cpp's converter does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llmd.api.ops import Embed, Head
from llmd.api.plan import ModelPlan
from llmd.api.tensors import PLAIN_FORMATS, Format, TensorRef
from llmd.conversion.formats import Formats, formats_of_gguf
from llmd.conversion.output_plan import OutputPlan, Source, rotating
from llmd.conversion.tensor_map import MappedTensor
from llmd.conversion.text_keys import text_keys
from llmd.models.gguf.config import TYPE
from llmd.models.gguf.config_keys import config_keys, stored_architecture
from llmd.models.gguf.deepseek4 import deepseek4_shapes
from llmd.models.gguf.families import FAMILIES
from llmd.models.gguf.fields import ARCHITECTURE
from llmd.models.gguf.header_writer import gguf_layout
from llmd.models.gguf.kimi_linear import kimi_shapes
from llmd.models.gguf.rope_keys import rope_keys
from llmd.models.gguf.rwkv7 import rwkv7_shapes, unread_tensors
from llmd.models.gguf.state_spaces import space_shapes
from llmd.models.gguf.tensor_names import as_stored
from llmd.models.model_path import path_name
from llmd.models.new_weights import INTEGERS, NewTensor

FILE_TYPES: Mapping[Format, int] = {
    "f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q8_0": 7, "q5_0": 8, "q5_1": 9, "bf16": 32, "mxfp4": 38,
}  # fmt: skip
"""``general.file_type`` for the main format. Source: ``llama_ftype`` of
github.com/ggml-org/llama.cpp.
"""
QUANTIZATION_VERSION = 2


class GgufTarget:
    """The `llmd.conversion.output_plan.Target` of GGUF files."""

    def plan(self, source: Source, quant: Format | None) -> ModelPlan:
        architecture = stored_architecture(source.plan)
        family = FAMILIES[architecture]
        fields = {**family.form, **family.in_weights}
        if family.in_weights and _differ_at_ends(source.plan):
            fields["tie_word_embeddings"] = False
        rotated = rotating(source.plan_with(fields), interleaved=family.interleaved)
        return as_stored(rotated, architecture)

    def formats(
        self, source: Source, tensor_map: Mapping[str, MappedTensor], quant: Format | None
    ) -> Formats:
        return formats_of_gguf(source.model.checkpoint, tensor_map, quant)

    def output(
        self, source: Source, plan: ModelPlan, tensor_map: Mapping[str, MappedTensor], formats: Formats
    ) -> OutputPlan:
        architecture = stored_architecture(plan)
        rope = rope_keys(source.model.config, source.plan)
        text = text_keys(source.path, plan.vocab_size)
        stated = config_keys(source.plan, source.text_config) | dict(rope.keys)
        shapes = {**space_shapes(plan), **kimi_shapes(plan), **rwkv7_shapes(plan), **deepseek4_shapes(plan)}
        tensors = tuple(
            NewTensor(name, formats.by_name[name], shapes.get(name) or _stored_shape(tensor.ref))
            for name, tensor in tensor_map.items()
        )
        keys = {
            **_general(source, architecture, tensors),
            **{f"{architecture}.{key}": value for key, value in stated.items()},
            **text.keys,
        }
        given = {**rope.tensors, **unread_tensors(plan)}
        every = (*(NewTensor(name, "f32", values.shape) for name, values in given.items()), *tensors)
        return OutputPlan(gguf_layout(keys, every), every, given=given, notices=text.notices)

    def weights(self, path: Path) -> Path:
        return path


def _differ_at_ends(plan: ModelPlan) -> bool:
    """Whether the embedding and the head have different multipliers."""
    return len({op.scale for part in plan.parts for op in part.ops if isinstance(op, Embed | Head)}) > 1


def _stored_shape(ref: TensorRef) -> tuple[int, ...]:
    """Return the shape without axes of one element; a stack keeps the axis of its members."""
    members, axes = ref.shape[: ref.is_stack], ref.shape[ref.is_stack :]
    return (*members, *(size for size in axes if size != 1)) or (1,)


def _general(source: Source, architecture: str, tensors: tuple[NewTensor, ...]) -> dict[str, Any]:
    """Return the keys that every GGUF file has."""
    weights = [tensor for tensor in tensors if tensor.format not in INTEGERS]
    matrices = Counter({tensor.format: 0 for tensor in weights})
    for tensor in weights:
        matrices[tensor.format] += tensor.num_bytes * (len(tensor.shape) > 1)
    main = matrices.most_common(1)[0][0]
    keys: dict[str, Any] = {
        ARCHITECTURE: architecture,
        TYPE: "model",
        "general.name": path_name(source.path.resolve()),
    }
    if main in FILE_TYPES:
        keys["general.file_type"] = FILE_TYPES[main]
    if set(matrices) - set(PLAIN_FORMATS):
        keys["general.quantization_version"] = QUANTIZATION_VERSION
    return keys
