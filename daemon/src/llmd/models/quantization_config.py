"""Check what a configuration says of quantised weights. Names and shapes of tensors say the rest.

Activations are not quantised as a configuration may ask for (``activation_scheme``, ``input_activations``):
llmd computes with float32 ones, which is more exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from llmd.api.errors import UnsupportedModelError
from llmd.api.plugins import Config
from llmd.api.tensors import SCALED_GROUPS
from llmd.models.formats.nvfp4 import GROUP

Fields = Mapping[str, Any]

BLOCK = [SCALED_GROUPS["fp8"]] * 2
"""Shape of the blocks that share a scale."""
WHOLE_OR_ROWS = ("tensor", "channel")
FLOATS = ("float-quantized", "naive-quantized")
"""Layouts of compressed-tensors in which an element is an FP8 number."""
NVFP4 = "nvfp4-pack-quantized"
"""The layout of compressed-tensors in which an element is a number of 4 bits."""
MODELOPT = ("FP8", "NVFP4")
SCALE_FORMATS = ("float", "ue8m0")
"""How scales of blocks were rounded, if to powers of two. Their dtype says how they are stored."""
EXPERTS = ("fp4", "fp8")
"""In what experts are stored if all else is in FP8: pairs of numbers of 4 bits, or FP8 as well."""


def check_quantization(config: Config, file: Path) -> None:
    """Check that llmd reads the quantised weights of a model, if it has any.

    Raises:
        UnsupportedModelError: it does not.
    """
    quantization = config.get("quantization_config")
    if quantization is None:
        return
    method = quantization.get("quant_method")
    # DeepSeek-V4 says beside the quantisation in what experts are stored.
    fields = {"expert_dtype": config.get("expert_dtype"), **quantization}
    problem = _METHODS[method](fields) if method in _METHODS else f"{method or 'unnamed method'}"
    if problem:
        raise UnsupportedModelError(
            f"{file}: the weights are quantised ({problem}), which llmd does not read",
            hint="use the unquantised model; `--quant q8` quantises it while it loads",
        )


def _mxfp4(_: Fields) -> str:
    return ""


def _fp8(fields: Fields) -> str:
    """Check the FP8 of DeepSeek, also with experts in FP4, Qwen and Mistral; return what is not supported."""
    if fields.get("fmt", "e4m3") != "e4m3":
        return f"fp8 with fmt {fields['fmt']}; llmd reads e4m3"
    block = fields.get("weight_block_size")
    if block not in (None, BLOCK):
        return f"fp8 with weight_block_size {block}; llmd reads {BLOCK}"
    for name, known in (("scale_fmt", SCALE_FORMATS), ("expert_dtype", EXPERTS)):
        if fields.get(name) not in (None, *known):
            return f"fp8 with {name} {fields[name]}; llmd reads {', '.join(known)}"
    return ""


def _compressed_tensors(fields: Fields) -> str:
    """Check what llm-compressor writes; return what is not supported."""
    if fields.get("transform_config"):
        return "compressed-tensors with transform_config"
    return next((problem for group in _groups(fields) if (problem := _group(group))), "")


def _groups(fields: Fields) -> Iterator[Fields]:
    """Yield the groups of modules, each with its ``format``."""
    groups = fields.get("config_groups")
    for group in groups.values() if isinstance(groups, dict) else ():
        if isinstance(group, dict):
            yield {**group, "format": group.get("format") or fields.get("format")}


def _group(group: Fields) -> str:
    if group["format"] not in (*FLOATS, NVFP4):
        return f"compressed-tensors with format {group['format']}; llmd reads {', '.join((*FLOATS, NVFP4))}"
    weights = group.get("weights") or {}
    kind = weights.get("type"), weights.get("num_bits")
    if group["format"] == NVFP4:
        shape = (*kind, weights.get("group_size"))
        return (
            "" if shape == ("float", 4, GROUP) else f"compressed-tensors with {NVFP4} and weights {weights}"
        )
    if kind != ("float", 8):
        return f"compressed-tensors with weights of type {kind[0]} and {kind[1]} bits"
    strategy, block = weights.get("strategy"), weights.get("block_structure")
    if strategy not in WHOLE_OR_ROWS and (strategy, block) != ("block", BLOCK):
        return f"compressed-tensors with strategy {strategy} and block_structure {block}"
    return ""


def _modelopt(fields: Fields) -> str:
    """Check what NVIDIA's ModelOpt writes; return what is not supported."""
    algorithm = fields.get("quant_algo")
    if algorithm not in MODELOPT:
        return f"modelopt with quant_algo {algorithm}; llmd reads {', '.join(MODELOPT)}"
    return ""


_METHODS: Mapping[str, Callable[[Fields], str]] = {
    "mxfp4": _mxfp4,
    "fp8": _fp8,
    "compressed-tensors": _compressed_tensors,
    "modelopt": _modelopt,
}
"""The kinds of quantised weights that llmd reads; each function returns what it does not read of its kind."""
