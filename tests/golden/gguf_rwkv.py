"""What llama.cpp's converter makes of RWKV-7.

Source: ``conversion/rwkv.py`` of github.com/ggml-org/llama.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from tests.golden.rwkv_tensors import INPUTS, RWKV7

Array = NDArray[np.float32]

RENAMED = {
    "ffn": "feed_forward",
    "attn": "attention",
    "feed_forward_norm": "ln2",
    "g_norm": "ln_x",
    "_lora.lora.0.weight": "1.weight",
    "_lora.lora.2.weight": "2.weight",
    "_lora.lora.2.bias": "0.weight",
}


def with_converted_rwkv(tensors: Mapping[str, Array], config: Mapping[str, Any]) -> dict[str, Array]:
    """Return the tensors under the names that the ``gguf`` package knows, with all shares of a layer in one,
    and a mix of values in the first layer, which nothing reads.
    """
    if config["model_type"] != RWKV7:
        return dict(tensors)
    return dict(one for name, tensor in tensors.items() for one in _converted(name, tensor, tensors))


def _converted(name: str, tensor: Array, tensors: Mapping[str, Array]) -> Iterator[tuple[str, Array]]:
    layer, _, share = name.rpartition(".attn.x_")
    if layer:
        if share == INPUTS[-1]:
            joined = np.stack([tensors[f"{layer}.attn.x_{value}"] for value in INPUTS])
            yield f"{layer.replace('model.layers', 'blk')}.time_mix_lerp_fused.weight", joined
        return
    for old, new in RENAMED.items():
        name = name.replace(old, new)
    if not name.endswith((".weight", ".bias")):
        name += ".weight"
    tensor = tensor.reshape(-1) if name.endswith("r_k.weight") else tensor.squeeze()
    yield name, tensor
    if unused := re.fullmatch(r"model\.layers\.0\.attention\.a(\d\.weight)", name):
        yield f"blk.0.time_mix_v{unused[1]}", tensor


def add_rwkv_keys(writer: gguf.GGUFWriter, config: Mapping[str, Any]) -> None:
    """Write the keys of an RWKV-7, whose context has no limit."""
    writer.kv_data[0].pop(f"{writer.arch}.context_length")
    writer.add_context_length(1 << 20)
    writer.add_layer_norm_eps(config["norm_eps"])
    writer.add_wkv_head_size(config["head_dim"])
    writer.add_decay_lora_rank(config["decay_low_rank_dim"])
    writer.add_iclr_lora_rank(config["a_low_rank_dim"])
    writer.add_value_residual_mix_lora_rank(config["v_low_rank_dim"])
    writer.add_gate_lora_rank(config["gate_low_rank_dim"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(0)
