"""The keys made for a plan. tests/golden/test_conversion.py tests the round trip of whole models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from llmd.api import ModelPlan
from llmd.api.errors import UnsupportedModelError
from llmd.builtin.architectures.plugin import llmd_architectures
from llmd.models.gguf.config_keys import config_keys, stored_architecture
from tests.golden.models.catalog import tiny_model
from tests.golden.models.encoders import bert

ARCHITECTURES = {name: found for found in llmd_architectures() for name in found.names}


def plan_of(config: dict[str, Any]) -> ModelPlan:
    return ARCHITECTURES[config["architectures"][0]].plan(config, None)


def plan(name: str, **fields: Any) -> ModelPlan:
    return plan_of({**tiny_model(name).config, **fields})


def test_sizes_are_those_of_the_configuration() -> None:
    config = tiny_model("llama-mqa-biases").config
    keys = config_keys(plan("llama-mqa-biases"), {})
    assert keys["embedding_length"] == config["hidden_size"] == 52
    assert keys["feed_forward_length"] == config["intermediate_size"] == 99
    assert keys["block_count"] == config["num_hidden_layers"]
    assert (keys["attention.head_count"], keys["attention.head_count_kv"]) == (4, 1)
    assert keys["attention.key_length"] == keys["attention.value_length"] == 18
    assert keys["context_length"] == config["max_position_embeddings"]
    assert keys["vocab_size"] == config["vocab_size"]
    assert keys["attention.layer_norm_rms_epsilon"] == config["rms_norm_eps"]


def test_rows_of_deepseek_v4_are_those_of_one_stream() -> None:
    keys = config_keys(plan("deepseek-v4-published"), {})
    assert (keys["embedding_length"], keys["embedding_length_out"]) == (64, 2 * 64)
    assert keys["attention.key_length"] == keys["attention.value_length"] == 32
    assert (keys["attention.head_count_kv"], keys["attention.sliding_window"]) == (1, 24)
    assert not {"attention.kv_lora_rank", "attention.indexer.types", "moe_latent_size"} & keys.keys()
    assert stored_architecture(plan("deepseek-v4-published")) == "deepseek4"


def test_layers_without_attention_have_no_heads_of_keys() -> None:
    keys = config_keys(plan("nemotron-h"), {})
    assert np.array_equal(keys["attention.head_count_kv"], [0, 0, 2, 0, 0])
    assert keys["attention.layer_norm_epsilon"] == 1e-3
    assert "attention.layer_norm_rms_epsilon" not in keys
    assert config_keys(plan("mamba2"), {})["attention.head_count"] == 0


def test_the_name_of_a_nemotron_depends_on_its_experts() -> None:
    assert stored_architecture(plan("nemotron-h")) == "nemotron_h"
    assert stored_architecture(plan("nemotron-h-moe")) == "nemotron_h_moe"


def test_the_parts_of_a_fused_matrix_are_told_apart() -> None:
    assert (
        config_keys(plan("phi4"), {})["feed_forward_length"] == tiny_model("phi4").config["intermediate_size"]
    )


def test_factors_of_granite_are_told() -> None:
    config = tiny_model("granite").config
    keys = config_keys(plan("granite"), {})
    assert keys["logit_scale"] == config["logits_scaling"]
    assert keys["embedding_scale"] == config["embedding_multiplier"]
    assert keys["residual_scale"] == config["residual_multiplier"]
    assert keys["attention.scale"] == config["attention_multiplier"]


def test_caps_of_gemma_are_told_where_there_are_some() -> None:
    keys = config_keys(plan("gemma2", attn_logit_softcapping=7.0, final_logit_softcapping=9.0), {})
    assert (keys["attn_logit_softcapping"], keys["final_logit_softcapping"]) == (7.0, 9.0)
    assert "final_logit_softcapping" not in config_keys(plan("gemma3"), {})


@pytest.mark.parametrize(
    ("types", "stated"),
    [("sfsf", None), ("ssf", 3), ("fff", None), ("sss", 4), ("fsfs", [False, True, False, True])],
)
def test_which_layers_have_a_window_is_told_where_it_is_not_the_custom(types: str, stated: object) -> None:
    names = {"s": "sliding_attention", "f": "full_attention"}
    made = plan("gemma2", num_hidden_layers=len(types), layer_types=[names[sign] for sign in types])
    keys = config_keys(made, {})
    pattern = keys.get("attention.sliding_window_pattern")
    assert (pattern.tolist() if isinstance(pattern, np.ndarray) else pattern) == stated
    assert ("attention.sliding_window" in keys) == ("s" in types)


def test_phi3_says_that_it_has_no_window() -> None:
    assert config_keys(plan("phi4"), {})["attention.sliding_window"] == 0
    assert config_keys(plan("phi3-window"), {})["attention.sliding_window"] == 13
    assert "attention.sliding_window" not in config_keys(plan("llama-f16"), {})


def test_mistral_is_a_llama_and_an_encoder_is_refused() -> None:
    assert stored_architecture(plan("mistral-no-window")) == "llama"
    assert stored_architecture(plan("olmo2")) == "olmo2"
    with pytest.raises(UnsupportedModelError, match=r"bert cannot be written as a GGUF file.*llama, qwen2"):
        stored_architecture(plan_of(bert()))
