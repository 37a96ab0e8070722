from __future__ import annotations

from typing import Any

import pytest

from llmd.api import CheckpointError, UnsupportedModelError
from llmd.builtin.architectures import gemma3, mistral
from llmd.builtin.architectures.vision_language import plan
from tests.golden.models.catalog import tiny_model

GEMMA = tiny_model("gemma3").config
MISTRAL = tiny_model("mistral-no-window").config


def test_the_text_configuration_decides() -> None:
    assert plan({"text_config": GEMMA}, None).parts == gemma3.plan(GEMMA, None).parts
    assert plan({"text_config": MISTRAL}, 17).parts == mistral.plan(MISTRAL, 17).parts


def test_what_gemmas_published_configurations_leave_out_is_known() -> None:
    published = {
        "model_type": "gemma3_text",
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "num_hidden_layers": 34,
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
        "sliding_window": 1024,
    }
    four_billion = plan({"text_config": published}, None)
    assert four_billion.vocab_size == 262208
    assert four_billion.max_context_len == 131072
    group = four_billion.groups[0]
    assert (group.window, group.kv_heads, group.head_dim) == (1024, 4, 256)


def test_heads_of_keys_that_llama_leaves_out_are_those_of_queries() -> None:
    text = {"model_type": "llama", "hidden_size": 5120, "num_attention_heads": 40, "num_hidden_layers": 1}
    assert plan({"text_config": text}, None).groups[0].kv_heads == 40


@pytest.mark.parametrize("text", [{"model_type": "gpt2"}, {**MISTRAL, "model_type": "ministral3"}])
def test_a_text_model_of_another_family_is_unsupported(text: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedModelError, match=r"text_config.model_type is"):
        plan({"text_config": text}, None)


@pytest.mark.parametrize("text", [None, 3, []])
def test_a_configuration_without_its_text_part_is_refused(text: Any) -> None:
    with pytest.raises(CheckpointError, match="text_config"):
        plan({"text_config": text}, None)
