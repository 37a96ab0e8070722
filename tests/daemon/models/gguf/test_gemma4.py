from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llmd.api.errors import CheckpointError
from llmd.models.gguf.fields import GgufFields
from llmd.models.gguf.gemma4 import gemma4_fields, gemma4_keys
from llmd.models.gguf.gguf_file import GgufFile
from tests.daemon.models.gguf.test_config_keys import plan
from tests.golden.gguf_layout import write_gguf
from tests.golden.models.catalog import tiny_model


def read(tmp_path: Path, name: str, changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    with GgufFile.open(write_gguf(tiny_model(name), tmp_path / "m.gguf", changes=changes)) as file:
        return gemma4_fields(GgufFields(file.metadata, file.tensors))


def test_each_layer_has_its_own_heads(tmp_path: Path) -> None:
    found = read(tmp_path, "gemma4")
    assert found["layer_types"] == ["sliding_attention", "sliding_attention", "full_attention"]
    assert (found["head_dim"], found["num_key_value_heads"]) == (32, 2)
    assert (found["global_head_dim"], found["num_global_key_value_heads"]) == (64, 1)
    assert (found["sliding_window"], found["final_logit_softcapping"]) == (12, 4.0)
    assert "per_layer_config" not in found


def test_heads_that_no_other_field_can_state_are_stated_by_layer(tmp_path: Path) -> None:
    found = read(tmp_path, "gemma4-odd", {"gemma4.attention.head_count_kv": np.array([2, 4, 4, 2])})
    windowed, full = ({"head_dim": dim, "num_key_value_heads": heads} for dim, heads in ((18, 4), (22, 2)))
    assert found["per_layer_config"] == {"0": full, "1": windowed, "2": windowed, "3": full}


def test_values_are_keys_where_full_attention_has_no_matrix_for_them(tmp_path: Path) -> None:
    assert read(tmp_path, "gemma4")["attention_k_eq_v"]
    found = read(tmp_path, "gemma4-odd")
    assert not found["attention_k_eq_v"]
    assert found["attention_bias"]
    assert found["final_logit_softcapping"] is None


def test_layers_without_keys_may_be_wider(tmp_path: Path) -> None:
    found = read(tmp_path, "gemma4-shared")
    assert (found["num_kv_shared_layers"], found["use_double_wide_mlp"]) == (3, True)
    found = read(tmp_path, "gemma4-per-layer")
    assert (found["num_kv_shared_layers"], found["use_double_wide_mlp"]) == (2, False)
    assert found["hidden_size_per_layer_input"] == 12


def test_experts_are_stated_where_there_are_some(tmp_path: Path) -> None:
    found = read(tmp_path, "gemma4-moe")
    assert (found["enable_moe_block"], found["num_experts"], found["top_k_experts"]) == (True, 8, 3)
    assert (found["moe_intermediate_size"], found["fused_experts"]) == (24, True)
    assert not read(tmp_path, "gemma4")["enable_moe_block"]


def test_each_kind_of_layer_has_its_own_rope(tmp_path: Path) -> None:
    changes = {"gemma4.rope.freq_base": 5e5, "gemma4.rope.freq_base_swa": None}
    ropes = read(tmp_path, "gemma4", changes)["rope_parameters"]
    assert [ropes[kind]["rope_theta"] for kind in ("full_attention", "sliding_attention")] == [5e5, 1e4]


def test_a_list_of_another_length_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="has 3 values for 4 layers"):
        read(tmp_path, "gemma4", {"gemma4.block_count": 4})


def test_keys_are_by_layer_where_layers_differ() -> None:
    keys = gemma4_keys(plan("gemma4-shared"))
    assert np.array_equal(keys["feed_forward_length"], [40, 40, 40, 80, 80, 80])
    assert np.array_equal(keys["attention.sliding_window_pattern"], [True, True, False] * 2)
    assert (keys["attention.head_count_kv"], keys["attention.shared_kv_layers"]) == (2, 3)
    assert (keys["attention.key_length"], keys["attention.value_length_swa"]) == (24, 20)
    assert np.array_equal(gemma4_keys(plan("gemma4"))["attention.head_count_kv"], [2, 2, 1])


def test_the_width_of_inputs_of_layers_is_stated() -> None:
    assert gemma4_keys(plan("gemma4-per-layer"))["embedding_length_per_layer_input"] == 12
    assert gemma4_keys(plan("gemma4"))["embedding_length_per_layer_input"] == 0
    assert gemma4_keys(plan("gemma3")) == {}
