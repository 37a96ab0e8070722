"""What llama.cpp's converter makes of layers with the state space of Mamba-2.

Source: ``conversion/mamba.py``, ``granite.py`` and ``nemotron.py`` of github.com/ggml-org/llama.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from tests.golden.space_tensors import BACKBONES, FALCON, layer_kinds, space_sizes

Array = NDArray[np.float32]


def with_converted_spaces(tensors: Mapping[str, Array], config: Mapping[str, Any]) -> dict[str, Array]:
    """Return the tensors under the names that the ``gguf`` package knows, with negative rates, matrices of
    filters and of norms, and the network of a Granite without experts in three parts.
    """
    if not space_sizes(config):
        return dict(tensors)
    if config["model_type"] == FALCON:
        tensors = {name: tensor * _falcon_factor(name, config) for name, tensor in tensors.items()}
    return dict(one for name, tensor in tensors.items() for one in _converted(name, tensor, config))


def _falcon_factor(name: str, config: Mapping[str, Any]) -> Array | np.float32:
    """What multiplies a tensor of Falcon-H1, whose multipliers are in the weights of files."""
    module = name.split(".")[-2]
    if module == "in_proj":
        return _of_projections(config)
    entering = config["attention_in_multiplier"]
    gate, down = config["mlp_multipliers"] or (1.0, 1.0)
    factors = {
        "embed_tokens": config["embedding_multiplier"],
        "lm_head": config["lm_head_multiplier"],
        "q_proj": entering,
        "k_proj": entering * config["key_multiplier"],
        "v_proj": entering,
        "o_proj": config["attention_out_multiplier"],
        "out_proj": config["ssm_out_multiplier"],
        "gate_proj": gate,
        "down_proj": down,
    }
    return np.float32(factors.get(module, 1.0))


def _of_projections(config: Mapping[str, Any]) -> Array:
    """The factors of the rows of the first matrix of a state space: a column."""
    heads, head_dim, groups, state, _ = space_sizes(config)
    widths = (heads * head_dim, heads * head_dim, groups * state, groups * state, heads)
    factors = np.repeat(config["ssm_multipliers"] or [1.0] * len(widths), widths)
    column: Array = (config["ssm_in_multiplier"] * factors).astype(np.float32)[:, None]
    return column


def _converted(name: str, tensor: Array, config: Mapping[str, Any]) -> Iterator[tuple[str, Array]]:
    layer, _, module = name.rpartition(".shared_mlp.")
    if layer and not config["num_local_experts"]:
        parts = np.split(tensor, 2) if module == "input_linear.weight" else [tensor]
        names = ("gate_proj", "up_proj") if len(parts) == 2 else ("down_proj",)
        for part, matrix in zip(names, parts, strict=True):
            yield f"{layer}.mlp.{part}.weight", matrix
        return
    kind = name.rpartition(".")[2]
    if kind == "A_log":
        tensor = -np.exp(tensor)
    if kind in ("A_log", "D"):
        tensor = tensor[:, None]
    if name.endswith("conv1d.weight"):
        tensor = tensor[:, 0]
    if name.endswith(("mixer.norm.weight", "mamba.norm.weight")):
        tensor = tensor.reshape(space_sizes(config)[2], -1)
    yield name.replace("dt_bias", "dt_proj.bias"), np.ascontiguousarray(tensor)


def add_space_keys(writer: gguf.GGUFWriter, config: Mapping[str, Any]) -> None:
    """Write the keys of a model with state spaces; none for other models."""
    if not space_sizes(config):
        return
    heads, head_dim, groups, state, taps = space_sizes(config)
    writer.add_ssm_conv_kernel(taps)
    writer.add_ssm_state_size(state)
    writer.add_ssm_group_count(groups)
    writer.add_ssm_inner_size(heads * head_dim)
    writer.add_ssm_time_step_rank(heads)
    if config["model_type"] == "granitemoehybrid":
        writer.add_rope_scaling_finetuned(config["position_embedding_type"] == "rope")


def layers_having(config: Mapping[str, Any], value: int, kinds: tuple[str, ...]) -> int | list[int]:
    """Return the value of a key for each layer that has one of these halves, 0 for others."""
    if config["model_type"] == "granitemoehybrid":
        return [value if kind in kinds else 0 for kind in config["layer_types"]]
    if config["model_type"] in BACKBONES:
        return [value if kind in kinds else 0 for kind in layer_kinds(config)]
    return value
