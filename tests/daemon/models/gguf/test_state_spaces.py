from __future__ import annotations

from pathlib import Path

from llmd.models.gguf.state_spaces import (
    falcon_h1_fields,
    having_tensor,
    space_keys,
    space_shapes,
    state_spaces,
)
from llmd.models.space_names import MAMBA2
from tests.daemon.models.gguf.test_config_keys import plan
from tests.daemon.models.gguf.test_families import fields


def test_sizes_have_the_names_of_the_family(tmp_path: Path) -> None:
    assert state_spaces(fields(tmp_path, "mamba2", {}), MAMBA2) == {
        "num_heads": 8,
        "head_dim": 16,
        "n_groups": 2,
        "state_size": 24,
        "conv_kernel": 4,
        "use_conv_bias": True,
        "use_bias": False,
    }


def test_falcon_h1_has_a_norm_if_its_tensor_is_there(tmp_path: Path) -> None:
    found = falcon_h1_fields(fields(tmp_path, "falcon-h1-plain", {}))
    assert (found["mamba_d_ssm"], found["mamba_rms_norm"], found["mamba_norm_before_gate"]) == (
        54,
        True,
        False,
    )
    assert not falcon_h1_fields(fields(tmp_path, "falcon-h1", {}))["mamba_rms_norm"]


def test_layers_of_a_draft_head_do_not_count(tmp_path: Path) -> None:
    whole = fields(tmp_path, "mamba2", {})
    assert having_tensor(whole, "ssm_in.weight") == [True, True, True]
    assert having_tensor(whole, "attn_q.weight") == [False, False, False]
    draft = fields(tmp_path, "mamba2", {"mamba2.nextn_predict_layers": 1})
    assert having_tensor(draft, "ssm_in.weight") == [True, True]


def test_sizes_are_stated_and_whether_attention_has_positions() -> None:
    assert space_keys(plan("nemotron-h")) == {
        "ssm.conv_kernel": 4,
        "ssm.state_size": 16,
        "ssm.group_count": 2,
        "ssm.inner_size": 120,
        "ssm.time_step_rank": 6,
    }
    assert space_keys(plan("granite-hybrid"))["rope.scaling.finetuned"] is False
    assert space_keys(plan("granite-hybrid-moe"))["rope.scaling.finetuned"] is True
    assert space_keys(plan("llama-f16")) == {}


def test_numbers_of_heads_are_columns_and_norms_have_a_row_for_each_group() -> None:
    shapes = space_shapes(plan("mamba2"))
    assert shapes["backbone.layers.1.mixer.A_log"] == shapes["backbone.layers.1.mixer.D"] == (8, 1)
    assert shapes["backbone.layers.1.mixer.norm.weight"] == (2, 64)
    assert len(shapes) == 3 * 3
    assert space_shapes(plan("granite-hybrid"))["model.layers.0.mamba.norm.weight"] == (1, 128)
