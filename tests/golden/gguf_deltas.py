"""What llama.cpp's converter makes of layers with the gated delta rule.

Source: ``conversion/qwen.py`` of github.com/ggml-org/llama.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from tests.golden.delta_tensors import HYBRIDS

Array = NDArray[np.float32]

PER_HEAD = ("in_proj_a.weight", "in_proj_b.weight", "dt_bias", "A_log")
"""Tensors of a layer with a row for each head of values."""


def with_converted_deltas(tensors: Mapping[str, Array], config: Mapping[str, Any]) -> dict[str, Array]:
    """Return the tensors under the names that the ``gguf`` package knows, with negative rates and matrices of
    filters. Qwen3-Next's matrices are split; the heads of Qwen3.5's values are sorted by their number within
    a key head.
    """
    if config["model_type"] not in HYBRIDS:
        return dict(tensors)
    return dict(one for name, tensor in tensors.items() for one in _converted(name, tensor, config))


def _converted(name: str, tensor: Array, config: Mapping[str, Any]) -> Iterator[tuple[str, Array]]:
    layer, _, module = name.partition(".linear_attn.")
    if not module:
        yield name, tensor
        return
    if module == "in_proj_qkvz.weight":
        yield from _split(layer, tensor, config)
        return
    if config["model_type"] != "qwen3_next":
        tensor = _tiled(module, tensor, config)
    if module == "A_log":
        tensor = -np.exp(tensor)
    if module == "conv1d.weight":
        tensor = tensor[:, 0]
    yield f"{layer}.linear_attn.{module.replace('dt_bias', 'dt_proj.bias')}", np.ascontiguousarray(tensor)


def _split(layer: str, tensor: Array, config: Mapping[str, Any]) -> Iterator[tuple[str, Array]]:
    """Yield the rows of q, k and v below each other, and those of z."""
    key_heads, key_dim = config["linear_num_key_heads"], config["linear_key_head_dim"]
    values = config["linear_num_value_heads"] // key_heads * config["linear_value_head_dim"]
    runs = tensor.reshape(key_heads, -1, tensor.shape[1])
    ends = np.cumsum([key_dim, key_dim, values])
    *qkv, z = (part.reshape(-1, tensor.shape[1]) for part in np.split(runs, ends, axis=1))
    yield f"{layer}.linear_attn.in_proj_qkv.weight", np.concatenate(qkv)
    yield f"{layer}.linear_attn.in_proj_z.weight", z


def _tiled(module: str, tensor: Array, config: Mapping[str, Any]) -> Array:
    key_heads, heads = config["linear_num_key_heads"], config["linear_num_value_heads"]
    dim = 1 if module in PER_HEAD else config["linear_value_head_dim"]
    axis = 1 if module == "out_proj.weight" else 0
    first = (
        2 * key_heads * config["linear_key_head_dim"] if module.startswith(("in_proj_qkv", "conv1d")) else 0
    )
    if module == "norm.weight":
        return tensor
    numbers = np.arange(heads * dim).reshape(key_heads, heads // key_heads, dim).swapaxes(0, 1).reshape(-1)
    order = np.concatenate([np.arange(first), first + numbers])
    return tensor.take(order, axis=axis)


def add_delta_keys(writer: gguf.GGUFWriter, config: Mapping[str, Any]) -> None:
    """Write the keys of a hybrid; none for other models."""
    if config["model_type"] not in HYBRIDS:
        return
    writer.add_ssm_conv_kernel(config["linear_conv_kernel_dim"])
    writer.add_ssm_state_size(config["linear_key_head_dim"])
    writer.add_ssm_group_count(config["linear_num_key_heads"])
    writer.add_ssm_time_step_rank(config["linear_num_value_heads"])
    writer.add_ssm_inner_size(config["linear_value_head_dim"] * config["linear_num_value_heads"])
    if interval := _interval(config["layer_types"]):
        writer.add_full_attention_interval(interval)
    if config["model_type"].startswith("qwen3_5"):
        writer.add_rope_dimension_sections(_pairs_of_axes(config))


def _interval(layer_types: Sequence[str]) -> int | None:
    """Return the distance of layers of full attention; None where it varies."""
    full = [layer + 1 for layer, kind in enumerate(layer_types) if kind == "full_attention"]
    regular = list(range(full[0], len(layer_types) + 1, full[0]))
    return full[0] if full == regular else None


def _pairs_of_axes(config: Mapping[str, Any]) -> list[int]:
    """Return transformers' default, 11, 11 and 10 of 32 pairs, for as many pairs as the model rotates."""
    pairs = int(config["head_dim"] * config["partial_rotary_factor"]) // 2
    return [len(range(axis, pairs, 3)) for axis in range(3)] + [0]
