"""Adds the draft head (multi-token prediction) that a family is published with to a tiny model.

Its tensors have the names of published checkpoints, and tiny shapes: nothing computes with them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.golden.checkpoint import write_safetensors
from tests.golden.models.tiny import TinyModel
from tests.golden.tensors import draw_tensors

OF_GLM = (
    "eh_proj.weight",
    "enorm.weight",
    "hnorm.weight",
    "shared_head.norm.weight",
    "input_layernorm.weight",
)
OF_QWEN = ("fc.weight", "pre_fc_norm_hidden.weight", "norm.weight", "layers.0.self_attn.q_proj.weight")
EXPERTS = tuple(
    f"mlp.experts.{number}.{name}_proj.weight" for number in range(3) for name in ("gate", "up", "down")
)
NUM_BYTES = 4 * 16
"""Of each tensor."""


def draft_names(case: TinyModel) -> list[str]:
    """The tensors of the draft head of a family, as Hugging Face directories name them."""
    if case.config["model_type"] == "glm4_moe":
        return [f"model.layers.{case.config['num_hidden_layers']}.{name}" for name in (*OF_GLM, *EXPERTS)]
    experts = [f"layers.0.{name}" for name in EXPERTS] if "num_experts" in case.config else []
    return [f"mtp.{name}" for name in (*OF_QWEN, *experts)]


def write_with_draft_head(case: TinyModel, directory: Path) -> Path:
    """Write the model and its draft head as a Hugging Face directory."""
    directory.mkdir()
    (directory / "config.json").write_text(json.dumps({**case.config, "num_nextn_predict_layers": 1}))
    drafts: dict[str, Any] = {name: np.ones((4, 4), np.float32) for name in draft_names(case)}
    write_safetensors(directory / "model.safetensors", {**dict(draw_tensors(case)), **drafts}, {})
    return directory
