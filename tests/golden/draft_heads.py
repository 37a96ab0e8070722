"""Adds the draft head (multi-token prediction) that a family is published with to a tiny model.

Its tensors have the names of published checkpoints, and tiny shapes: nothing computes with them.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from tests.golden.checkpoint import Tensors, write_safetensors
from tests.golden.compressed_tensors import DEEPSEEK_V4
from tests.golden.gguf_layout import num_layers
from tests.golden.models.tiny import TinyModel
from tests.golden.tensors import draw_tensors

AFTER_LAYERS = (
    "eh_proj.weight",
    "enorm.weight",
    "hnorm.weight",
    "shared_head.norm.weight",
    "input_layernorm.weight",
)
"""Of a head that is stored as one more layer."""
OF_LATENTS = ("embed_tokens.weight", "shared_head.head.weight", "self_attn.kv_a_proj_with_mqa.weight")
OF_INDEXERS = ("self_attn.indexer.wq_b.weight", "self_attn.indexer.weights_proj.weight")
OF_QWEN = ("fc.weight", "pre_fc_norm_hidden.weight", "norm.weight", "layers.0.self_attn.q_proj.weight")
OF_NEMOTRON = (
    *("layers.0.enorm.weight", "layers.0.hnorm.weight", "layers.0.eh_proj.weight", "layers.0.norm.weight"),
    *("layers.0.mixer.q_proj.weight", "layers.1.norm.weight", "layers.1.final_layernorm.weight"),
    *(
        f"layers.1.mixer.experts.{number}.{name}_proj.weight"
        for number in range(3)
        for name in ("up", "down")
    ),
)
OF_DEEPSEEK_V4 = (
    *("e_proj.weight", "h_proj.weight", "enorm.weight", "hnorm.weight", "norm.weight", "hc_head_fn"),
    *("hc_attn_fn", "attn_norm.weight", "attn.wkv.weight", "attn.attn_sink", "ffn.gate.bias"),
    *(f"ffn.experts.{number}.{name}.weight" for number in range(3) for name in ("w1", "w2", "w3")),
)
EXPERTS = tuple(
    f"mlp.experts.{number}.{name}_proj.weight" for number in range(3) for name in ("gate", "up", "down")
)
NUM_BYTES = 4 * 16
"""Of each tensor."""


def draft_names(case: TinyModel) -> list[str]:
    """The tensors of the draft head of a family, as Hugging Face directories name them."""
    config = case.config
    if config["model_type"] == DEEPSEEK_V4:
        return [f"mtp.0.{name}" for name in OF_DEEPSEEK_V4]
    if "layers_block_type" in config:
        return [f"mtp.{name}" for name in OF_NEMOTRON]
    if "n_routed_experts" in config:
        latents = OF_LATENTS if "kv_lora_rank" in config else ()
        indexers = OF_INDEXERS if "index_topk" in config else ()
        names = (*AFTER_LAYERS, *latents, *indexers, *EXPERTS)
        return [f"model.layers.{num_layers(config)}.{name}" for name in names]
    experts = [f"layers.0.{name}" for name in EXPERTS] if "num_experts" in config else []
    return [f"mtp.{name}" for name in (*OF_QWEN, *experts)]


def write_with_draft_head(case: TinyModel, directory: Path, head: Tensors | None = None) -> Path:
    """Write the model and a draft head, by default that of `draft_names`, as a Hugging Face directory."""
    directory.mkdir()
    (directory / "config.json").write_text(json.dumps({**case.config, "num_nextn_predict_layers": 1}))
    drafts: Tensors = {name: np.ones((4, 4), np.float32) for name in draft_names(case)}
    tensors = {**dict(draw_tensors(case)), **(drafts if head is None else head)}
    write_safetensors(directory / "model.safetensors", tensors, {})
    return directory
