from __future__ import annotations

import pytest

from llmd.api import CheckpointError
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.deepseek import latent_plan, num_dense, sparse_plan
from llmd.builtin.architectures.mixture import Mixture
from tests.golden.models.catalog import tiny_model

FIELDS = ConfigFields(tiny_model("deepseek-v3").config)


def test_the_first_layers_have_no_experts_and_the_draft_head_is_left_out() -> None:
    made = latent_plan("of a test", FIELDS, Mixture(8, 32, 2), 2, None)
    kinds = [[op.kind for op in part.ops] for part in made.parts if part.kind == "ffn"]
    assert ["experts" in one for one in kinds] == [False, False, True]
    (left_out,) = made.left_out
    assert "model.layers.3." in left_out.marks
    assert made.architecture == "of a test"


def test_a_choice_of_positions_is_carried_only_if_layers_share_it() -> None:
    fields = ConfigFields(tiny_model("glm-moe-dsa-shared").config)
    made = sparse_plan("of a test", fields, Mixture(8, 32, 2), 2, None, interleaved=True)
    assert made.carried == ("chosen",)
    assert [one.what for one in made.left_out] == ["a draft head", "indexers"]
    alone = ConfigFields(tiny_model("glm-moe-dsa").config)
    made = sparse_plan("of a test", alone, Mixture(8, 32, 2), 2, None, interleaved=True)
    assert (made.carried, len(made.left_out)) == ((), 1)


def test_layers_without_experts_come_first() -> None:
    types = {"mlp_layer_types": ["dense", "sparse", "sparse"]}
    assert num_dense(ConfigFields({"num_hidden_layers": 3, **types}), 2) == 1
    assert num_dense(ConfigFields({"num_hidden_layers": 3}), 2) == 2
    with pytest.raises(CheckpointError, match="a dense layer after a sparse one"):
        num_dense(ConfigFields({"num_hidden_layers": 2, "mlp_layer_types": ["sparse", "dense"]}), 2)
