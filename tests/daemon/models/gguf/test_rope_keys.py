"""The RoPE keys made for each form of a configuration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from llmd.api.errors import UnsupportedModelError
from llmd.models.gguf.rope_keys import RopeKeys, rope_keys
from tests.daemon.models.gguf.test_config_keys import plan_of
from tests.golden.models.catalog import tiny_model


def keys_of(name: str, **fields: Any) -> RopeKeys:
    config = {**tiny_model(name).config, **fields}
    return rope_keys(config, plan_of(config))


def test_base_and_rotated_part_are_told() -> None:
    assert keys_of("codellama").keys == {"rope.freq_base": 1000000.0, "rope.dimension_count": 16}
    assert keys_of("codellama", rope_theta=None).keys["rope.freq_base"] == 10000.0


def test_the_newer_spelling_says_the_same() -> None:
    linear = {"rope_type": "linear", "factor": 2.5}
    older = keys_of("codellama", rope_theta=5000.0, rope_scaling=linear)
    newer = keys_of(
        "codellama", rope_theta=None, rope_scaling=None, rope_parameters={"rope_theta": 5000.0, **linear}
    )
    assert older == newer
    assert older.keys["rope.scaling.factor"] == 2.5


def test_llama_3_is_a_divisor_for_each_pair() -> None:
    found = keys_of("llama3-gqa-tied")
    divisors = found.tensors["rope_freqs.weight"]
    assert divisors.dtype == np.float32
    assert (divisors[0], divisors[-1]) == (1.0, 8.0)
    assert "rope.scaling.type" not in found.keys


def test_divisors_that_a_file_has_stated_are_stated_again() -> None:
    listed = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0]
    scaling = {
        "rope_type": "longrope",
        "short_factor": listed,
        "long_factor": listed,
        "attention_factor": 1.0,
    }
    found = keys_of("codellama", rope_scaling=scaling)
    assert found.tensors["rope_freqs.weight"].tolist() == pytest.approx(listed)


def test_longrope_has_a_list_for_each_length() -> None:
    config = tiny_model("phi3-longrope-long").config
    found = keys_of("phi3-longrope-long")
    assert found.keys["rope.scaling.type"] == "longrope"
    assert found.keys["rope.scaling.original_context_length"] == config["original_max_position_embeddings"]
    assert found.tensors["rope_factors_long.weight"].tolist() == pytest.approx(
        config["rope_scaling"]["long_factor"]
    )
    assert set(found.tensors) == {"rope_factors_long.weight", "rope_factors_short.weight"}


def test_yarn_states_by_what_its_own_factor_is_multiplied_where_it_is() -> None:
    found = keys_of("llama-yarn-rope").keys
    assert (found["rope.scaling.type"], found["rope.scaling.factor"]) == ("yarn", 4.0)
    assert "rope.scaling.attn_factor" not in found
    scaling = tiny_model("llama-yarn-rope").config["rope_scaling"] | {"attention_factor": 1.5}
    changed = keys_of("llama-yarn-rope", rope_scaling=scaling).keys
    assert changed["rope.scaling.attn_factor"] == pytest.approx(1.5 / (0.1 * np.log(4) + 1))


def test_gemma_3_has_another_base_in_layers_with_a_window() -> None:
    found = keys_of("gemma3", rope_theta=2e6, rope_local_base_freq=3e4).keys
    assert (found["rope.freq_base"], found["rope.freq_base_swa"]) == (2e6, 3e4)
    absent = keys_of("gemma3", rope_theta=None, rope_local_base_freq=None).keys
    assert (absent["rope.freq_base"], absent["rope.freq_base_swa"]) == (1e6, 1e4)


def test_what_files_have_no_words_for_is_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="dynamic RoPE"):
        keys_of("llama-dynamic-rope-within")


@pytest.mark.parametrize("name", ["qwen3-5", "qwen3-5-moe"])
def test_pairs_of_each_axis_are_told(name: str) -> None:
    assert np.array_equal(keys_of(name, head_dim=256).keys["rope.dimension_sections"], [11, 11, 10, 0])
    stated = keys_of(name, rope_parameters={"rope_type": "default", "mrope_section": [2, 1, 1]})
    assert np.array_equal(stated.keys["rope.dimension_sections"], [2, 1, 1, 0])


def test_attention_without_positions_has_a_base_all_the_same() -> None:
    assert keys_of("nemotron-h").keys == {"rope.freq_base": 10000.0, "rope.dimension_count": 24}
    assert keys_of("mamba2").keys == {}


def test_yarn_of_latent_attention_multiplies_scores() -> None:
    scaling = tiny_model("deepseek-v3").config["rope_scaling"]
    found = keys_of("deepseek-v3")
    assert found.keys["rope.scaling.yarn_log_multiplier"] == pytest.approx(0.0707)
    assert "rope.scaling.attn_factor" not in found.keys
    with pytest.raises(UnsupportedModelError, match="unequal mscale and mscale_all_dim"):
        keys_of("deepseek-v3", rope_scaling=scaling | {"mscale": 1.0})


def test_layers_of_gemma_4_turn_other_parts_of_heads() -> None:
    found = keys_of("gemma4")
    assert found.keys == {
        "rope.freq_base": 1000000.0,
        "rope.freq_base_swa": 10000.0,
        "rope.dimension_count": 64,
        "rope.dimension_count_swa": 32,
    }
    divisors = found.tensors["rope_freqs.weight"]
    assert divisors[:8] == pytest.approx(1.0)
    assert set(divisors[8:].tolist()) == {float(np.float32(1e30))}


def test_layers_of_deepseek_v4_that_compress_have_another_base_and_the_scaling() -> None:
    keys = keys_of("deepseek-v4-some-experts").keys
    assert (keys["rope.freq_base"], keys["attention.compress_rope_freq_base"]) == (10000.0, 40000.0)
    assert keys["rope.dimension_count"] == 16
    assert (keys["rope.scaling.type"], keys["rope.scaling.factor"]) == ("yarn", 4.0)
    assert keys["rope.scaling.original_context_length"] == 32
    assert "rope.scaling.attn_factor" not in keys
    plain = keys_of("deepseek-v4-some-experts", compress_rope_theta=None, rope_scaling=None).keys
    assert plain["attention.compress_rope_freq_base"] == 160000.0
    assert "rope.scaling.type" not in plain


def test_both_ropes_of_deepseek_v4_may_be_stated_apart() -> None:
    scaling = tiny_model("deepseek-v4-some-experts").config["rope_scaling"]
    yarn = {**scaling, "rope_type": "yarn", "rope_theta": 40000.0}
    both = {"main": {"rope_type": "default", "rope_theta": 10000.0}, "compress": yarn}
    unstated = dict.fromkeys(("rope_theta", "compress_rope_theta", "rope_scaling"))
    apart = keys_of("deepseek-v4-some-experts", rope_parameters=both, **unstated)
    assert apart == keys_of("deepseek-v4-some-experts")
