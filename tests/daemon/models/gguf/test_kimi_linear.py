from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from llmd.api.errors import UnsupportedModelError
from llmd.api.state_ops import GatedDelta
from llmd.models.gguf.kimi_linear import kimi_keys, kimi_linear_fields, kimi_shapes
from llmd.models.gguf.tensor_names import as_stored
from tests.daemon.models.gguf.test_config_keys import plan
from tests.daemon.models.gguf.test_families import fields
from tests.golden.models.catalog import tiny_model


def test_tensors_say_which_layers_have_linear_attention(tmp_path: Path) -> None:
    found = kimi_linear_fields(fields(tmp_path, "kimi-linear", {}))
    assert found["linear_attn_config"] == tiny_model("kimi-linear").config["linear_attn_config"]
    assert found["split_kv_b"]


def test_fields_have_the_names_of_the_published_configuration(tmp_path: Path) -> None:
    found = kimi_linear_fields(fields(tmp_path, "kimi-linear", {}))
    config = tiny_model("kimi-linear").config
    names = (
        "num_experts",
        "num_experts_per_token",
        "num_shared_experts",
        "num_expert_group",
        "model_max_length",
    )
    assert [found[name] for name in names] == [config[name] for name in names]


def test_weights_of_experts_are_normalised_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    assert kimi_linear_fields(fields(tmp_path, "kimi-linear", {}))["moe_renormalize"] is True
    stated = {"kimi-linear.expert_weights_norm": False}
    assert kimi_linear_fields(fields(tmp_path, "kimi-linear", stated))["moe_renormalize"] is False


def test_layers_of_both_kinds_must_have_as_many_heads() -> None:
    made = plan("kimi-linear")
    delta = next(op for part in made.parts for op in part.ops if isinstance(op, GatedDelta))
    assert kimi_keys(made, delta) == {"ssm.conv_kernel": 4, "kda.head_dim": 24}
    with pytest.raises(UnsupportedModelError, match=r"linear attention have 7 heads .* full attention 4"):
        kimi_keys(made, msgspec.structs.replace(delta, heads=7))


def test_filters_and_rates_have_more_axes_in_files() -> None:
    shapes = kimi_shapes(as_stored(plan("kimi-linear"), "kimi-linear"))
    assert shapes["blk.0.ssm_conv1d_q.weight"] == (1, 96, 1, 4)
    assert shapes["blk.0.ssm_a"] == (1, 1, 4, 1)
    assert kimi_shapes(plan("qwen3-5")) == {}
