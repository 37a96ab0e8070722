from __future__ import annotations

from typing import Any

import pytest

from llmd.api import UnsupportedModelError
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.gemma import gemma_ends, gemma_style
from llmd.builtin.architectures.shape import Shape

SHAPE = Shape(64, 96, 131, 2, 4, 2, 10)


def fields(**values: Any) -> ConfigFields:
    return ConfigFields({"rms_norm_eps": 1e-6} | values)


def test_scores_are_scaled_by_a_number_of_the_configuration_not_by_the_head() -> None:
    assert gemma_style(fields(query_pre_attn_scalar=144)).scale == pytest.approx(1 / 12)
    assert gemma_style(fields()).scale == pytest.approx(1 / 16)


def test_norms_surround_each_part_and_store_their_weight_minus_one() -> None:
    style = gemma_style(fields())
    assert style.norm_offset == 1.0
    assert style.pre_norms == ("input_layernorm", "pre_feedforward_layernorm")
    assert style.post_norms == ("post_attention_layernorm", "post_feedforward_layernorm")


def test_hidden_activation_counts_and_hidden_act_does_not() -> None:
    assert gemma_style(fields(hidden_act="silu")).activation == "gelu_tanh"


def test_attention_in_both_directions_is_unsupported() -> None:
    assert gemma_style(fields(use_bidirectional_attention=None)) == gemma_style(fields())
    with pytest.raises(UnsupportedModelError, match="use_bidirectional_attention is True"):
        gemma_style(fields(use_bidirectional_attention=True))


def test_the_embedding_is_multiplied_by_the_root_of_its_width_and_tied() -> None:
    ends = gemma_ends(fields(), SHAPE, softcap=None)
    assert (ends.embed_scale, ends.tied, ends.head_softcap) == (8.0, True, None)


def test_the_soft_cap_of_the_logits_is_the_familys_unless_stated() -> None:
    assert gemma_ends(fields(), SHAPE, softcap=30.0).head_softcap == 30.0
    assert gemma_ends(fields(final_logit_softcapping=20.0), SHAPE, softcap=30.0).head_softcap == 20.0
    assert gemma_ends(fields(final_logit_softcapping=None), SHAPE, softcap=30.0).head_softcap is None
