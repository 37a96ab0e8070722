"""The keys of layers with experts and states. tests/golden/test_conversion.py tests those of whole models."""

from __future__ import annotations

import numpy as np
import pytest

from llmd.models.gguf.layer_keys import has_experts, layer_keys
from tests.daemon.models.gguf.test_config_keys import plan


def test_a_model_without_experts_and_states_has_no_such_keys() -> None:
    assert layer_keys(plan("llama-f16")) == {}
    assert not has_experts(plan("llama-f16"))


def test_counts_are_stated_and_widths_where_the_architecture_has_them() -> None:
    assert layer_keys(plan("mixtral")) == {"expert_count": 4, "expert_used_count": 2}
    assert layer_keys(plan("qwen2-moe")) == {
        "expert_count": 6,
        "expert_used_count": 2,
        "expert_feed_forward_length": 48,
        "expert_shared_feed_forward_length": 52,
    }


def test_the_routers_of_glm_are_described() -> None:
    keys = layer_keys(plan("glm4-moe-groups"))
    assert (keys["expert_group_count"], keys["expert_group_used_count"]) == (4, 2)
    assert (keys["expert_weights_norm"], keys["expert_gating_func"]) == (False, 2)
    assert (keys["expert_shared_count"], keys["leading_dense_block_count"]) == (2, 1)


def test_the_routers_of_deepseek_v4_have_another_score_and_no_groups() -> None:
    keys = layer_keys(plan("deepseek-v4-some-experts"))
    assert (keys["expert_gating_func"], keys["expert_weights_norm"]) == (4, True)
    assert (keys["expert_weights_scale"], keys["expert_shared_count"]) == (1.5, 1)
    assert keys["expert_feed_forward_length"] == 48
    assert not {"expert_group_count", "leading_dense_block_count"} & keys.keys()


@pytest.mark.parametrize("name", ["qwen3-next", "qwen3-5"])
def test_sizes_of_states_are_stated(name: str) -> None:
    keys = layer_keys(plan(name))
    sizes = [keys[f"ssm.{key}"] for key in ("conv_kernel", "state_size", "group_count", "time_step_rank")]
    assert sizes == [4, 16, 2, 4]
    assert keys["ssm.inner_size"] == 24 * 4


def test_layers_with_states_are_told_by_an_interval_or_one_by_one() -> None:
    assert layer_keys(plan("qwen3-5"))["full_attention_interval"] == 3
    flags = layer_keys(plan("qwen3-5-tied"))["attention.recurrent_layers"]
    assert np.array_equal(flags, [True, False, True, True, False])
