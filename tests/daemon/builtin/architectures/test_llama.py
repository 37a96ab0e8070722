from __future__ import annotations

import pytest

from llmd.api import CheckpointError, Linear, Rope, UnsupportedModelError
from llmd.builtin.architectures.llama import plan
from tests.golden.models.catalog import tiny_model

CONFIG = tiny_model("llama2-mha").config


def test_fields_that_old_configurations_lack_have_their_meaning() -> None:
    lacking = ("attention_bias", "mlp_bias", "rope_theta", "tie_word_embeddings", "num_key_value_heads")
    old = {name: value for name, value in CONFIG.items() if name not in lacking}
    assert plan(old, None) == plan(CONFIG, None)


def test_a_bias_of_attention_is_on_all_four_projections() -> None:
    mixer = plan({**CONFIG, "attention_bias": True}, None).parts[1]
    biases = [bias for op in mixer.ops if isinstance(op, Linear) for bias in op.biases]
    assert len(biases) == 4
    assert all(biases)


@pytest.mark.parametrize("name", ["hidden_size", "vocab_size", "rms_norm_eps", "max_position_embeddings"])
def test_a_missing_field_is_named(name: str) -> None:
    with pytest.raises(CheckpointError, match=f"{name} is missing"):
        plan({**CONFIG, name: None}, None)


def test_an_unknown_activation_is_unsupported() -> None:
    with pytest.raises(UnsupportedModelError, match="hidden_act"):
        plan({**CONFIG, "hidden_act": "tanhshrink"}, None)


def test_neighbours_are_rotated_where_the_configuration_says_so() -> None:
    rotations = [
        op for op in plan({**CONFIG, "rope_interleave": True}, None).parts[1].ops if isinstance(op, Rope)
    ]
    assert [op.interleaved for op in rotations] == [True, True]
    assert plan({**CONFIG, "rope_interleave": False}, None) == plan(CONFIG, None)
