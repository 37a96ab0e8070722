"""Rewrites a tiny model as the text part of a multimodal model, with tensors that text does not need."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.golden.checkpoint import write_safetensors
from tests.golden.models.tiny import TinyModel
from tests.golden.tensors import draw_tensors

Rename = Callable[[str], str]

WORD_ENDS = re.compile("(?<=[a-z0-9])(?=[A-Z][a-z])")
LINEARS = ("qkv_proj", "o_proj", "gate_up_proj", "down_proj")
RANK = 2


def write_phi4_multimodal(case: TinyModel, directory: Path) -> Path:
    """As Microsoft publishes it: an adapter for vision and one for speech at every linear layer,
    and encoders.
    """
    tensors: dict[str, Any] = {"model.embed_tokens_extend.image_embed.glb_GN": np.ones((1, 1, 8), np.float32)}
    for name, stored in draw_tensors(case):
        module = name.removesuffix(".weight")
        if not module.endswith(LINEARS):
            tensors[name] = stored
            continue
        tensors[f"{module}.base_layer.weight"] = stored
        for sense in ("speech", "vision"):
            tensors[f"{module}.lora_A.{sense}.weight"] = np.ones((RANK, stored.shape[1]), np.float32)
            tensors[f"{module}.lora_B.{sense}.weight"] = np.ones((stored.shape[0], RANK), np.float32)
    names = {"architectures": ["Phi4MMForCausalLM"], "model_type": "phi4mm", "vision_lora": {"r": RANK}}
    return _write(directory, {**case.config, **names}, tensors)


def write_phi4_of_transformers(case: TinyModel, directory: Path) -> Path:
    """As transformers writes it: adapters in files of their own."""
    encoder = {"model.embed_tokens_extend.audio_embed.encoder.weight": np.ones(8, np.float32)}
    names = {"architectures": ["Phi4MultimodalForCausalLM"], "model_type": "phi4_multimodal"}
    return _write(directory, {**case.config, **names}, dict(draw_tensors(case)) | encoder)


def write_vision_language(
    case: TinyModel,
    directory: Path,
    *,
    architecture: str,
    below: Rename,
    tower: Sequence[str],
    text_type: str | None = None,
) -> Path:
    """Add the modules of ``tower``, which see or hear, to the text model, whose tensors are renamed with
    ``below``. ``text_type`` is the text model's type if it differs from that of the text model alone.
    """
    tensors: dict[str, Any] = {below(name): stored for name, stored in draw_tensors(case)}
    tensors |= {f"{module}.layers.0.mlp.fc1.weight": np.ones((4, 4), np.float32) for module in tower}
    text = {name: value for name, value in case.config.items() if name != "architectures"}
    text["model_type"] = text_type or text["model_type"]
    name = architecture.removesuffix("ForConditionalGeneration")
    config = {
        "architectures": [architecture],
        "model_type": WORD_ENDS.sub("_", name).lower(),
        "text_config": text,
        "vision_config": {"hidden_size": 4},
    }
    return _write(directory, config, tensors)


def as_published(name: str) -> str:
    """What transformers named the text model until its version 4.52, and hubs keep."""
    return f"language_model.{name}"


def as_written_now(name: str) -> str:
    """What transformers names it since."""
    return name if name.startswith("lm_head") else f"model.language_model.{name.removeprefix('model.')}"


def as_idefics_names_it(name: str) -> str:
    """What SmolVLM names it, too."""
    return name if name.startswith("lm_head") else f"model.text_model.{name.removeprefix('model.')}"


def _write(directory: Path, config: Mapping[str, Any], tensors: Mapping[str, Any]) -> Path:
    directory.mkdir(parents=True)
    (directory / "config.json").write_text(json.dumps(config))
    write_safetensors(directory / "model.safetensors", tensors, {})
    return directory
