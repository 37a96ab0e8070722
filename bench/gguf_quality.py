"""Compares a GGUF file's weights with its checkpoint's: ``python -m bench.gguf_quality DIRECTORY PATH``.

Runs in the peer's environment and prints one JSON object.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from bench.checkpoint import stored_tensors, to_float32

ROWS = 256
"""Rows of each matrix to compare: whole heads, so that the order of rows within heads does not matter."""
EMBEDDING = "token_embd.weight"
HEAD = "output.weight"
EXPERTS = "_exps."
DENSE = ("llama", "qwen3", "phi3")
"""Types of models whose weights are compared."""
_NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.qkv_proj": "attn_qkv",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.gate_up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def main() -> None:
    print(json.dumps(quality(Path(sys.argv[1]), Path(sys.argv[2]))))


def quality(directory: Path, path: Path) -> dict[str, Any]:
    """Return ``nmse`` of the matrices (None for types that are not compared); of the matrices that tokens
    read, ``read_bytes`` without experts, ``expert_bytes``, ``types`` and ``bits_per_weight``.
    """
    config = json.loads((directory / "config.json").read_text())
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
    read = [
        one
        for one in tensors.values()
        if len(one.shape) > 1 and (one.name != EMBEDDING or HEAD not in tensors)
    ]
    types: dict[str, int] = {}
    for one in read:
        types[one.tensor_type.name] = types.get(one.tensor_type.name, 0) + int(one.n_bytes)
    experts = sum(int(one.n_bytes) for one in read if EXPERTS in one.name)
    num_bytes, num_weights = sum(types.values()), sum(int(one.n_elements) for one in read)
    return {
        "nmse": weight_error(directory, config, tensors) if config["model_type"] in DENSE else None,
        "read_bytes": num_bytes - experts,
        "expert_bytes": experts,
        "types": types,
        "bits_per_weight": 8 * num_bytes / num_weights,
    }


def weight_error(
    directory: Path, config: Mapping[str, Any], tensors: Mapping[str, gguf.ReaderTensor]
) -> float:
    """Return the squared error of the matrices over their squares."""
    error = total = 0.0
    for name, bits in stored_tensors(directory / "model.safetensors"):
        if bits.ndim == 1:
            continue
        stored = tensors[gguf_name(name)]
        found = gguf.quants.dequantize(stored.data[:ROWS], stored.tensor_type)
        wanted = to_float32(interleaved(name, bits, config)[:ROWS]).astype(np.float64)
        error += float(((found - wanted) ** 2).sum())
        total += float((wanted**2).sum())
    return error / total


def interleaved(name: str, rows: NDArray[np.uint16], config: Mapping[str, Any]) -> NDArray[np.uint16]:
    """Return the rows in the peer's order: for Llama, its RoPE rotates neighbouring elements instead of
    halves.
    """
    heads = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}
    field = heads.get(name.split(".")[-2])
    if config["model_type"] != "llama" or field is None:
        return rows
    halves = rows.reshape(config[field], 2, config["head_dim"] // 2, rows.shape[1])
    return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(rows.shape)


def gguf_name(name: str) -> str:
    """Return the peer's name of a tensor."""
    if name in _NAMES:
        return _NAMES[name]
    _, _, layer, rest = name.split(".", 3)
    return f"blk.{layer}.{_NAMES[rest.removesuffix('.weight')]}.weight"


if __name__ == "__main__":
    main()
