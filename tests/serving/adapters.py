"""LoRA adapters of the tiny served model, with random matrices."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.golden.checkpoint import write_safetensors
from tests.golden.tensors import tensor_shapes
from tests.golden.weights import draw

RANK = 4
SCALE = 2.0
MODULES = ("q_proj", "v_proj", "down_proj")


def write_adapter(directory: Path, model: Path, *, seed: int = 1, **fields: Any) -> Path:
    """Write an adapter of the model in a directory; returns the adapter's. ``fields`` go into its
    configuration.
    """
    directory.mkdir(parents=True)
    config = {"peft_type": "LORA", "r": RANK, "lora_alpha": RANK * SCALE, "bias": "none", **fields}
    (directory / "adapter_config.json").write_text(json.dumps(config))
    tensors = {}
    for name, shape in tensor_shapes(json.loads((model / "config.json").read_text())).items():
        module = name.removesuffix(".weight")
        if module.endswith(MODULES):
            for end, of_matrix in (("A", (RANK, shape[1])), ("B", (shape[0], RANK))):
                stored = f"base_model.model.{module}.lora_{end}.weight"
                tensors[stored] = draw(seed, stored, of_matrix, 0.0, of_matrix[1] ** -0.5)
    write_safetensors(directory / "adapter_model.safetensors", tensors, {})
    return directory


def use_adapters(config: Path, model: str, directories: Iterable[Path]) -> None:
    """Write a configuration file that gives a model these adapters, each with the name of its directory."""
    config.mkdir(parents=True, exist_ok=True)
    entries = [f"{directory.name}={directory}" for directory in directories]
    (config / "config.toml").write_text(f'[models."{model}"]\nlora = {json.dumps(entries)}\n')
