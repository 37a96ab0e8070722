"""The keys of latent attention. tests/golden/test_conversion.py tests the round trip of whole models."""

from __future__ import annotations

from llmd.models.gguf.latent_keys import latent_keys, rotated_elements
from tests.daemon.models.gguf.test_config_keys import plan


def test_sizes_are_stated_as_attention_sees_them_and_as_heads_have_them() -> None:
    assert latent_keys(plan("deepseek-v3")) == {
        "attention.key_length": 80,
        "attention.value_length": 64,
        "attention.key_length_mla": 48,
        "attention.value_length_mla": 32,
        "attention.kv_lora_rank": 64,
        "attention.q_lora_rank": 32,
    }
    assert rotated_elements(plan("deepseek-v3")) == 16


def test_queries_of_the_hidden_state_have_no_rank() -> None:
    assert "attention.q_lora_rank" not in latent_keys(plan("deepseek-v2-lite"))


def test_other_models_have_no_such_keys() -> None:
    assert latent_keys(plan("llama-f16")) == {}
    assert rotated_elements(plan("llama-f16")) is None
