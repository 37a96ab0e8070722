from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import UnsupportedModelError
from llmd.models.gguf.rwkv7 import rwkv7_fields, rwkv7_keys, rwkv7_shapes, unread_tensors
from llmd.models.gguf.tensor_names import as_stored
from tests.daemon.models.gguf.test_config_keys import plan
from tests.daemon.models.gguf.test_families import fields


def test_sizes_have_the_names_of_fla(tmp_path: Path) -> None:
    found = rwkv7_fields(fields(tmp_path, "rwkv7", {}))
    assert found.pop("norm_eps") == pytest.approx(1e-3)
    assert found == {
        "head_dim": 16,
        "decay_low_rank_dim": 24,
        "a_low_rank_dim": 16,
        "v_low_rank_dim": 8,
        "gate_low_rank_dim": 32,
        "norm_bias": True,
        "norm_first": True,
    }
    assert not rwkv7_fields(fields(tmp_path, "rwkv7-odd", {}))["norm_bias"]


def test_another_number_of_mixes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError, match="token_shift_count is 1"):
        rwkv7_fields(fields(tmp_path, "rwkv7", {"rwkv7.token_shift_count": 1}))


def test_keys_are_those_that_are_read() -> None:
    found = rwkv7_keys(plan("rwkv7"))
    assert found == {
        "wkv.head_size": 16,
        "attention.decay_lora_rank": 24,
        "attention.iclr_lora_rank": 16,
        "attention.value_residual_mix_lora_rank": 8,
        "attention.gate_lora_rank": 32,
    }
    assert rwkv7_keys(plan("llama-f16")) == {}


def test_a_layer_that_mixes_in_no_values_has_any_rank_of_them() -> None:
    assert rwkv7_keys(plan("rwkv7", num_hidden_layers=1))["attention.value_residual_mix_lora_rank"] == 16


def test_files_have_tensors_that_nothing_reads() -> None:
    made = as_stored(plan("rwkv7", joined_shares=True), "rwkv7")
    unread = unread_tensors(made)
    assert {name: tensor.shape for name, tensor in unread.items()} == {
        "blk.0.time_mix_v0.weight": (64,),
        "blk.0.time_mix_v1.weight": (16, 64),
        "blk.0.time_mix_v2.weight": (64, 16),
    }
    assert unread_tensors(plan("llama-f16")) == {}
    assert rwkv7_shapes(made)["blk.2.time_mix_lerp_fused.weight"] == (6, 1, 1, 64)
