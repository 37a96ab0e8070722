"""Configurations of adapters: scales as PEFT has them, and what is refused by name."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import CheckpointError, UnsupportedModelError
from llmd.models.adapters.adapter_config import AdapterConfig, read_adapter_config

LORA = {"peft_type": "LORA", "r": 8, "lora_alpha": 16}
Q, DOWN = "model.layers.11.self_attn.q_proj", "model.layers.1.mlp.down_proj"


def read(folder: Path, **fields: Any) -> AdapterConfig:
    (folder / "adapter_config.json").write_text(json.dumps({**LORA, **fields}))
    return read_adapter_config(folder)


def test_the_scale_is_alpha_divided_by_the_rank_or_its_root(tmp_path: Path) -> None:
    assert read(tmp_path).scale_of(Q) == 2.0
    assert read(tmp_path, use_rslora=True).scale_of(Q) == 16 / math.sqrt(8)


def test_patterns_fit_the_end_of_a_name_from_a_dot_on(tmp_path: Path) -> None:
    patterns = {"j_proj": 1, r"layers\.1\.mlp\.down_proj": 4, "down_proj": 2, "^q_proj": 3}
    config = read(tmp_path, rank_pattern=patterns, alpha_pattern={"q_proj": 4})
    assert (config.rank_of(Q), config.scale_of(Q)) == (8, 0.5)
    assert (config.rank_of(DOWN), config.scale_of(DOWN)) == (4, 4.0)
    assert config.rank_of("model.layers.11.mlp.down_proj") == 2


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"use_dora": True}, "use_dora is set"),
        ({"bias": "lora_only"}, "bias is lora_only"),
        ({"lora_bias": True}, "lora_bias is set"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save has"),
        ({"target_parameters": ["mlp.experts.gate_up_proj"]}, "target_parameters has"),
        ({"init_lora_weights": "pissa_niter_4"}, "init_lora_weights is pissa_niter_4"),
        ({"peft_type": "IA3"}, "peft_type is IA3, not LORA"),
    ],
)
def test_what_is_not_applied_is_refused_by_name(tmp_path: Path, fields: dict[str, Any], named: str) -> None:
    with pytest.raises(UnsupportedModelError, match=named):
        read(tmp_path, **fields)


def test_fields_that_change_nothing_are_allowed(tmp_path: Path) -> None:
    read(tmp_path, fan_in_fan_out=True, lora_dropout=0.1, init_lora_weights="gaussian", unknown=1)


@pytest.mark.parametrize("fields", [{"r": 0}, {"lora_alpha": "x"}, {"rank_pattern": {"(": 2}}])
def test_damaged_values_are_refused(tmp_path: Path, fields: dict[str, Any]) -> None:
    with pytest.raises(CheckpointError, match=r"adapter_config\.json"):
        read(tmp_path, **fields)


def test_a_directory_without_a_configuration_is_no_adapter(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="there is no such file"):
        read_adapter_config(tmp_path)
