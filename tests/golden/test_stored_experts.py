"""Mixtures answer the same when transformers 5 has saved the experts of a layer in two tensors."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llmd.engine.loading import OpenDevice
from tests.golden.checkpoint import write_safetensors
from tests.golden.converted import converted, different, stored_tensors
from tests.golden.engines import Architectures, engine, logits_error
from tests.golden.expected import read_expected
from tests.golden.models.catalog import tiny_model
from tests.golden.models.tiny import TinyModel
from tests.golden.tensors import draw_tensors

BOUND = 1e-9
FUSED = (
    "mixtral-all-experts",
    "qwen2-moe-every-other-layer",
    "qwen3-moe-one-expert",
    "olmoe",
    "granite-moe-shared",
    "glm4-moe-groups",
    "qwen3-next-odd",
)
EXPERT = re.compile(r"(?P<layer>.+\.)(?:mlp|block_sparse_moe)\.experts\.\d+\.(?P<matrix>\w+)\.weight")
MATRICES = {"w1": "gate_proj", "w3": "up_proj", "w2": "down_proj"}
RENAMED = {
    "block_sparse_moe.input_linear.weight": "block_sparse_moe.experts.gate_up_proj",
    "block_sparse_moe.output_linear.weight": "block_sparse_moe.experts.down_proj",
    "block_sparse_moe.router.layer.weight": "block_sparse_moe.router.weight",
    "block_sparse_moe.gate.weight": "mlp.gate.weight",
}
"""Of Granite MoE and Mixtral."""


def with_fused_experts(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """What ``save_pretrained(…, save_original_format=False)`` of transformers 5 writes."""
    found: dict[str, Any] = {}
    stacks: dict[str, dict[str, list[Any]]] = {}
    for name, tensor in tensors.items():
        if expert := EXPERT.fullmatch(name):
            matrix = MATRICES.get(expert["matrix"], expert["matrix"])
            stacks.setdefault(expert["layer"], {}).setdefault(matrix, []).append(tensor)
        else:
            end = next((end for end in RENAMED if name.endswith(end)), "")
            found[name.removesuffix(end) + RENAMED.get(end, "")] = tensor
    for layer, matrices in stacks.items():
        gates, ups, downs = (np.stack(matrices[name]) for name in ("gate_proj", "up_proj", "down_proj"))
        found[f"{layer}mlp.experts.gate_up_proj"] = np.concatenate([gates, ups], axis=1)
        found[f"{layer}mlp.experts.down_proj"] = downs
    return found


def with_separate_experts(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Qwen3.5-MoE, whose experts are published in two tensors, with a tensor for each matrix."""
    found: dict[str, Any] = {}
    for name, tensor in tensors.items():
        module, _, kind = name.rpartition(".")
        if not module.endswith("experts"):
            found[name] = tensor
            continue
        for number, rows in enumerate(tensor):
            parts = {"gate_proj": rows[: len(rows) // 2], "up_proj": rows[len(rows) // 2 :]}
            for matrix, part in (parts if kind == "gate_up_proj" else {"down_proj": rows}).items():
                found[f"{module}.{number}.{matrix}.weight"] = part
    return found


def write(case: TinyModel, directory: Path, tensors: Mapping[str, Any]) -> Path:
    directory.mkdir()
    (directory / "config.json").write_text(json.dumps(case.config))
    write_safetensors(directory / "model.safetensors", tensors, {})
    return directory


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("name", [*FUSED, "qwen3-5-moe"])
def test_a_mixture_answers_whatever_tensors_hold_its_experts(
    name: str, device: str, tmp_path: Path, architectures: Architectures, open_device: OpenDevice
) -> None:
    case = tiny_model(name)
    change = with_fused_experts if name in FUSED else with_separate_experts
    changed = change(dict(draw_tensors(case)))
    assert changed.keys() != dict(draw_tensors(case)).keys()
    path = write(case, tmp_path / "m", changed)
    with engine(case, path, architectures, open_device, device=device) as core:
        assert logits_error(core, case, read_expected(name)) <= BOUND


@pytest.mark.parametrize("name", ["mixtral", "granite-moe", "glm4-moe"])
def test_a_converted_directory_has_experts_as_the_family_is_published(
    name: str, tmp_path: Path, architectures: Architectures
) -> None:
    case = tiny_model(name)
    drawn = dict(draw_tensors(case))
    converted(write(case, tmp_path / "fused", with_fused_experts(drawn)), tmp_path / "copy", architectures)
    original = write(case, tmp_path / "original", drawn)
    assert different(stored_tensors(original), stored_tensors(tmp_path / "copy")) == []
