"""Directories are written as transformers writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llmd.api import Architecture
from tests.golden.checkpoint import write_checkpoint, write_safetensors
from tests.golden.converted import converted, stored_tensors
from tests.golden.gguf_layout import write_gguf
from tests.golden.models.catalog import tiny_model
from tests.golden.tensors import draw_tensors

Architectures = Mapping[str, Architecture]


def config_of(source: Path, target: Path, architectures: Architectures, **options: Any) -> dict[str, Any]:
    converted(source, target, architectures, **options)
    config: dict[str, Any] = json.loads((target / "config.json").read_text())
    return config


def test_the_configuration_of_a_directory_stays_but_for_the_type(
    tmp_path: Path, architectures: Architectures
) -> None:
    source = write_checkpoint(tiny_model("qwen2-tied"), tmp_path / "source")
    stated = json.loads((source / "config.json").read_text())
    assert config_of(source, tmp_path / "a", architectures) == stated
    changed = config_of(source, tmp_path / "b", architectures, quant="bf16")
    assert changed == stated | {"torch_dtype": "bfloat16"}
    (source / "config.json").write_text(json.dumps(stated | {"dtype": "float32", "torch_dtype": None}))
    assert config_of(source, tmp_path / "c", architectures, quant="f16")["dtype"] == "float16"


@pytest.mark.parametrize("name", ["llama-f16", "granite"])
def test_heads_are_rotated_as_transformers_rotates_them(
    name: str, tmp_path: Path, architectures: Architectures
) -> None:
    source = write_gguf(tiny_model(name), tmp_path / "m.gguf")
    config = config_of(source, tmp_path / "back", architectures)
    assert "rope_interleave" not in config
    assert config["torch_dtype"] == {"f16": "float16", "f32": "float32"}[tiny_model(name).dtype]


def test_phi3_has_the_fields_that_its_class_takes(tmp_path: Path, architectures: Architectures) -> None:
    case = tiny_model("phi3-longrope-long")
    config = config_of(write_gguf(case, tmp_path / "m.gguf"), tmp_path / "back", architectures)
    assert set(config["rope_scaling"]) == {"type", "short_factor", "long_factor"}
    assert config["original_max_position_embeddings"] == case.config["original_max_position_embeddings"]
    plain = config_of(write_gguf(tiny_model("phi4"), tmp_path / "p.gguf"), tmp_path / "plain", architectures)
    assert plain["rope_scaling"] is None


def test_the_configuration_of_gemma_4_is_that_of_transformers(
    tmp_path: Path, architectures: Architectures
) -> None:
    case = tiny_model("gemma4-per-layer")
    found = config_of(write_gguf(case, tmp_path / "m.gguf"), tmp_path / "m", architectures)
    assert not {"per_layer_config", "rope_scaling", "rope_theta"} & found.keys()
    for name in ("vocab_size_per_layer_input", "global_head_dim", "layer_types", "num_kv_shared_layers"):
        assert found[name] == case.config[name], name
    full = found["rope_parameters"]["full_attention"]
    assert int(case.config["global_head_dim"] * full["partial_rotary_factor"] / 2) == 8


def test_the_configuration_of_deepseek_v4_has_the_fields_of_published_ones(
    tmp_path: Path, architectures: Architectures
) -> None:
    case = tiny_model("deepseek-v4-some-experts")
    found = config_of(write_gguf(case, tmp_path / "m.gguf"), tmp_path / "m", architectures)
    assert not {"intermediate_size", "partial_rotary_factor", "rope_interleave"} & found.keys()
    others = case.config.keys() - {"rope_scaling", "hidden_act", "bos_token_id"}
    assert {name: found[name] for name in others} == {name: case.config[name] for name in others}
    scaling = dict(case.config["rope_scaling"])
    scaling["rope_type"] = scaling.pop("type")
    assert found["rope_scaling"] == scaling | {"truncate": True}


def test_keys_that_nothing_reads_are_left_out_of_a_directory(
    tmp_path: Path, architectures: Architectures
) -> None:
    case = tiny_model("gemma4-shared")
    source, unread = write_checkpoint(case, tmp_path / "source"), "model.layers.4.self_attn.k_proj.weight"
    tensors = dict(draw_tensors(case))
    write_safetensors(source / "model.safetensors", tensors | {unread: np.ones((40, 64), np.float32)}, {})
    report = converted(source, tmp_path / "copy", architectures)
    assert any("keys of layers" in notice for notice in report.notices)
    assert stored_tensors(tmp_path / "copy").keys() == tensors.keys()
