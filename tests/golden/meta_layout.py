"""Rewrites a tiny model as Meta or Mistral would publish it:
other names, other fields, rotations of neighbours.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.golden.checkpoint import Tensors, write_safetensors, write_shards
from tests.golden.models.tiny import TinyModel
from tests.golden.tensors import draw_tensors

MODULES = {
    "self_attn.q_proj": "attention.wq",
    "self_attn.k_proj": "attention.wk",
    "self_attn.v_proj": "attention.wv",
    "self_attn.o_proj": "attention.wo",
    "mlp.gate_proj": "feed_forward.w1",
    "mlp.up_proj": "feed_forward.w3",
    "mlp.down_proj": "feed_forward.w2",
    "input_layernorm": "attention_norm",
    "post_attention_layernorm": "ffn_norm",
}
ENDS = {"model.embed_tokens": "tok_embeddings", "model.norm": "norm", "lm_head": "output"}

Array = NDArray[np.generic]


def meta_params(config: Mapping[str, Any]) -> dict[str, Any]:
    """``params.json`` as Meta writes it: the width of the feed-forward network follows from other fields.

    The vocabulary is left open, as in Llama 2.
    """
    hidden = config["hidden_size"]
    params = {
        "dim": hidden,
        "n_layers": config["num_hidden_layers"],
        "n_heads": config["num_attention_heads"],
        "n_kv_heads": config["num_key_value_heads"],
        "vocab_size": -1,
        "norm_eps": config["rms_norm_eps"],
        "rope_theta": config["rope_theta"],
        "multiple_of": 32,
        "ffn_dim_multiplier": config["intermediate_size"] / (8 * hidden // 3),
        "max_seq_len": config["max_position_embeddings"],
    }
    if config.get("rope_scaling"):
        params |= {"use_scaled_rope": True}
    return params


def mistral_params(config: Mapping[str, Any]) -> dict[str, Any]:
    """``params.json`` as Mistral writes it."""
    params = meta_params(config)
    del params["multiple_of"], params["ffn_dim_multiplier"]
    return params | {
        "vocab_size": config["vocab_size"],
        "hidden_dim": config["intermediate_size"],
        "head_dim": config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"],
        "sliding_window": config.get("sliding_window"),
        "tied_embeddings": config["tie_word_embeddings"],
    }


def meta_tensors(case: TinyModel) -> dict[str, Array]:
    """The tensors under Meta's names; the rows of queries and keys as
    they lie where neighbours are rotated.
    """
    return {meta_name(name): _interleaved(name, stored, case.config) for name, stored in draw_tensors(case)}


def meta_name(name: str) -> str:
    """``layers.0.attention.wq.weight`` for ``model.layers.0.self_attn.q_proj.weight``."""
    module = name.removesuffix(".weight")
    if module in ENDS:
        return f"{ENDS[module]}.weight"
    _, layers, layer, inner = module.split(".", 3)
    return f"{layers}.{layer}.{MODULES[inner]}.weight"


def _interleaved(name: str, stored: Array, config: Mapping[str, Any]) -> Array:
    """Return a head's rows with each rotated pair interleaved;
    the stored layout has the two halves one after the other.
    """
    heads = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}.get(name.split(".")[-2])
    if heads is None:
        return stored
    rows, width = stored.shape
    halves = stored.reshape(config[heads], 2, rows // config[heads] // 2, width)
    return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(rows, width)


def write_meta(case: TinyModel, directory: Path, *, pieces: int = 1, embedding_axis: int = 1) -> Path:
    """A directory as Meta's, in ``pieces`` files that each hold a piece of every matrix.

    The embedding is cut along ``embedding_axis``. It is written again as the head where they are one.
    """
    tensors = meta_tensors(case) | {"rope.freqs": np.zeros(8, np.float32)}
    tensors.setdefault("output.weight", tensors["tok_embeddings.weight"])
    axes = {"wo": 1, "w2": 1, "tok_embeddings": embedding_axis}
    directory.mkdir(parents=True)
    (directory / "params.json").write_text(json.dumps(meta_params(case.config)))
    for number in range(pieces):
        piece = {
            name: _piece(array, axes.get(name.split(".")[-2], 0), number, pieces)
            for name, array in tensors.items()
        }
        write_safetensors(directory / f"consolidated.{number:02}.safetensors", piece, {})
    return directory


def write_mistral(case: TinyModel, directory: Path) -> Path:
    """A directory as Mistral's, in shards where the case has some."""
    directory.mkdir(parents=True)
    (directory / "params.json").write_text(json.dumps(mistral_params(case.config)))
    tensors: Tensors = meta_tensors(case)
    if case.num_shards == 1:
        write_safetensors(directory / "consolidated.safetensors", tensors, {})
    else:
        write_shards(directory, tensors, case.num_shards, stem="consolidated")
    return directory


def _piece(array: Array, axis: int, number: int, pieces: int) -> Array:
    if array.ndim < 2:
        return array
    return np.ascontiguousarray(np.split(array, pieces, axis)[number])
