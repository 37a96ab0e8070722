from __future__ import annotations

from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.deepseek import latent_plan
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
