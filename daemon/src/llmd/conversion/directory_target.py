"""Write a model as a directory of safetensors, as transformers does."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from llmd.api.errors import UnsupportedModelError
from llmd.api.expert_ops import Experts
from llmd.api.plan import ModelPlan
from llmd.api.tensors import Format
from llmd.conversion.directory_shapes import directory_shapes
from llmd.conversion.formats import Formats, formats_of_directory
from llmd.conversion.output_plan import OutputPlan, Source
from llmd.conversion.tensor_map import MappedTensor
from llmd.conversion.text_files import text_files
from llmd.models.gguf.deepseek4 import DEEPSEEK_V4
from llmd.models.gguf.families import FORM_FIELDS
from llmd.models.gguf.gemma4 import FULL
from llmd.models.gguf.source import GgufSource
from llmd.models.hugging_face import CONFIG_FILE, HuggingFaceSource
from llmd.models.new_weights import BYTES, NewTensor
from llmd.models.safetensors_writer import safetensors_layout
from llmd.models.shards import SINGLE_FILE
from llmd.models.split_formats import BLOCK_LEN, CODES, SCALES

TORCH_DTYPES: Mapping[Format, str] = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}
OLDER, NEWER = "torch_dtype", "dtype"
"""The field for the dtype of the weights: in transformers 4, and in later versions."""
ORIGINAL_LEN = "original_max_position_embeddings"
OTHER_WORDS = ("intermediate_size", "partial_rotary_factor")
"""Fields that are ``moe_intermediate_size`` and ``qk_rope_head_dim`` in published configurations."""


QUANTIZATION = "quantization_config"
MXFP4_CONFIG: Mapping[str, Any] = {
    "quant_method": "mxfp4",
    "modules_to_not_convert": [
        "model.layers.*.self_attn",
        "model.layers.*.mlp.router",
        "model.embed_tokens",
        "lm_head",
    ],
}
"""What a configuration of gpt-oss says of weights in MXFP4. Source: ``config.json`` of openai/gpt-oss-20b."""
MXFP4: Format = "mxfp4"
HOLD_MXFP4 = ("gpt_oss",)
"""The architectures whose experts may be in MXFP4 in a directory."""


class DirectoryTarget:
    """The `llmd.conversion.output_plan.Target` of directories."""

    def plan(self, source: Source, quant: Format | None) -> ModelPlan:
        """Return the plan with tensors as in transformers.

        A model for images or audio is refused: its configuration would describe parts that are not written.
        """
        if isinstance(source.form, HuggingFaceSource) and _has_other_media(source):
            raise UnsupportedModelError(
                f"{source.path}: the model also processes images or audio, but llmd converts only text models",
                hint="give a TARGET that ends in .gguf: such files contain only the text part",
            )
        return source.plan_of(_stated(source, keeps_mxfp4=_keeps_mxfp4(source, quant)))

    def formats(
        self, source: Source, tensor_map: Mapping[str, MappedTensor], quant: Format | None
    ) -> Formats:
        narrows = isinstance(source.form, GgufSource)
        kept = MXFP4 if _keeps_mxfp4(source, quant) else None
        return formats_of_directory(source.model.checkpoint, tensor_map, quant, narrows=narrows, kept=kept)

    def output(
        self, source: Source, plan: ModelPlan, tensor_map: Mapping[str, MappedTensor], formats: Formats
    ) -> OutputPlan:
        shapes = directory_shapes(plan)
        tensors = tuple(
            one
            for name, tensor in tensor_map.items()
            for one in _new_tensors(name, formats.by_name[name], shapes.get(name, tensor.ref.shape))
        )
        plain = (tensor for tensor in tensors if tensor.format in TORCH_DTYPES)
        largest = max(plain, key=lambda tensor: tensor.num_bytes)
        config = config_of(source, largest.format, keeps_mxfp4=MXFP4 in formats.by_name.values())
        files = text_files(source.path) | {CONFIG_FILE: json.dumps(config, indent=2).encode()}
        return OutputPlan(safetensors_layout(tensors), tensors, files)

    def weights(self, path: Path) -> Path:
        return path / SINGLE_FILE


def _new_tensors(name: str, fmt: Format, shape: tuple[int, ...]) -> tuple[NewTensor, ...]:
    """Return the tensor; of MXFP4 weights, one with the codes and one with the scales."""
    if fmt != MXFP4:
        return (NewTensor(name, fmt, shape),)
    *rows, row_len = shape
    scales = (*rows, row_len // BLOCK_LEN)
    return (
        NewTensor(f"{name}{CODES}", BYTES, (*scales, BLOCK_LEN // 2)),
        NewTensor(f"{name}{SCALES}", BYTES, scales),
    )


def _has_other_media(source: Source) -> bool:
    """Whether the model has tensors, or a configuration, of parts for images or audio."""
    marks = [mark for one in source.plan.left_out if one.is_other_media for mark in one.marks]
    stored = (mark in name for name in source.model.checkpoint.tensors for mark in marks)
    return bool(marks) and ("text_config" in source.model.config or any(stored))


def _keeps_mxfp4(source: Source, quant: Format | None) -> bool:
    """Whether experts stay in MXFP4."""
    if quant is not None or source.plan.architecture not in HOLD_MXFP4:
        return False
    ops = (op for part in source.model.plan.parts for op in part.ops if isinstance(op, Experts))
    refs = (ref for op in ops for ref in op.tensors if ref is not None and ref.is_matrix)
    return {source.model.checkpoint.tensors[ref.name].format for ref in refs} == {MXFP4}


def config_of(source: Source, weights: Format, *, keeps_mxfp4: bool = False) -> dict[str, Any]:
    """Return the configuration of the directory for plain weights of this format."""
    config = _stated(source, keeps_mxfp4=keeps_mxfp4)
    if isinstance(source.form, GgufSource) and config["model_type"] in REWRITTEN:
        config = REWRITTEN[config["model_type"]](config)
    return {**config, NEWER if NEWER in config else OLDER: TORCH_DTYPES[weights]}


def _stated(source: Source, *, keeps_mxfp4: bool) -> dict[str, Any]:
    """Return the configuration without fields that describe tensors as only other forms have them."""
    others = frozenset() if isinstance(source.form, HuggingFaceSource) else FORM_FIELDS
    config = {key: value for key, value in source.model.config.items() if key not in others}
    quantization = config.pop(QUANTIZATION, MXFP4_CONFIG)
    return {**config, QUANTIZATION: quantization} if keeps_mxfp4 else config


def _with_rope_of_phi3(config: dict[str, Any]) -> dict[str, Any]:
    """Keep only the longrope fields that Phi-3 in transformers accepts; it computes the attention factor."""
    stated = config["rope_scaling"]
    if not stated or "long_factor" not in stated:
        return config
    lists = {name: stated[name] for name in ("short_factor", "long_factor")}
    trained = {name: stated[name] for name in (ORIGINAL_LEN,) if stated.get(name)}
    return {**config, **trained, "rope_scaling": {"type": "longrope", **lists}}


def _as_gemma4(config: dict[str, Any]) -> dict[str, Any]:
    """State RoPE by kind of layer, and the size of the table of single layers, which files leave out."""
    ropes: dict[str, Any] = config["rope_parameters"]
    full = ropes[FULL] | (config["rope_scaling"] or {})
    others = {key: value for key, value in config.items() if key not in ("rope_scaling", "rope_theta")}
    return others | {
        "rope_parameters": ropes | {FULL: full},
        "vocab_size_per_layer_input": config["vocab_size"],
    }


def _as_published(config: dict[str, Any]) -> dict[str, Any]:
    """Leave out fields of DeepSeek-V4 that state in other words what published ones state."""
    return {key: value for key, value in config.items() if key not in OTHER_WORDS}


REWRITTEN: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "phi3": _with_rope_of_phi3,
    "gemma4_text": _as_gemma4,
    DEEPSEEK_V4: _as_published,
}
"""How configurations read from GGUF files become those of transformers, by ``model_type``, if they differ."""
