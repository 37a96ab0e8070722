"""Names and rows of GGUF files for the modules that adapters change."""

from __future__ import annotations

import numpy as np
import pytest

from llmd.api.errors import UnsupportedModelError
from llmd.models.gguf.adapter_form import GgufForm, neighbours

CONFIG = {"num_attention_heads": 4, "num_key_value_heads": 2}
LLAMA = GgufForm("llama", CONFIG)


@pytest.mark.parametrize(
    ("module", "stored"),
    [
        ("model.layers.3.self_attn.q_proj", "blk.3.attn_q"),
        ("model.language_model.layers.0.self_attn.o_proj", "blk.0.attn_output"),
        ("layers.12.mlp.gate_up_proj", "blk.12.ffn_up"),
        ("model.layers.1.mlp.shared_expert.down_proj", "blk.1.ffn_down_shexp"),
    ],
)
def test_modules_have_the_names_of_the_file(module: str, stored: str) -> None:
    assert LLAMA.module(module) == stored


@pytest.mark.parametrize(
    ("architecture", "module"),
    [
        ("llama", "lm_head"),
        ("qwen3next", "model.layers.0.linear_attn.in_proj_qkvz"),
        ("deepseek2", "model.layers.0.self_attn.kv_b_proj"),
        ("falcon-h1", "model.layers.0.self_attn.k_proj"),
    ],
)
def test_modules_that_the_converter_changes_are_refused_by_name(architecture: str, module: str) -> None:
    with pytest.raises(UnsupportedModelError, match=module.replace(".", r"\.")):
        GgufForm(architecture, CONFIG).module(module)


def test_files_whose_weights_are_multiplied_take_no_adapter() -> None:
    with pytest.raises(UnsupportedModelError, match="no adapter to such GGUF files"):
        GgufForm("falcon-h1", CONFIG).module("model.layers.0.self_attn.k_proj")


def test_rows_that_are_rotated_together_are_side_by_side() -> None:
    rows = np.arange(8)[:, None] * np.ones((1, 3))
    assert neighbours(rows, 2)[:, 0].tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
    assert neighbours(rows, 1)[:, 0].tolist() == [0, 4, 1, 5, 2, 6, 3, 7]


@pytest.mark.parametrize(
    ("architecture", "name", "heads"),
    [("llama", "q_proj", 4), ("granite", "k_proj", 2), ("llama", "v_proj", 0), ("qwen3", "q_proj", 0)],
)
def test_queries_and_keys_of_some_families_have_another_order(
    architecture: str, name: str, heads: int
) -> None:
    order = GgufForm(architecture, CONFIG).row_order(f"model.layers.0.self_attn.{name}")
    rows = np.arange(16)[:, None]
    assert (order is not None) == (heads > 0)
    if order is not None:
        np.testing.assert_array_equal(order(rows), neighbours(rows, heads))
