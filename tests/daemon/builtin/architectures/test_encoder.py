from __future__ import annotations

from typing import Any

import pytest

from llmd.api import (
    HIDDEN,
    CheckpointError,
    EmbedPosition,
    EncoderAttention,
    ModelError,
    Norm,
    UnsupportedModelError,
)
from llmd.builtin.architectures.bert import plan
from tests.golden.models.encoders import bert

PLAN = plan(bert(hidden_act="relu"), None)


def test_an_encoder_keeps_nothing_and_hands_out_hidden_states() -> None:
    assert PLAN.groups == ()
    assert not PLAN.has_head
    assert [part.kind for part in PLAN.parts] == ["embed", *["mixer", "ffn"] * 2]


def test_every_part_ends_with_the_norm_of_the_residual_stream() -> None:
    for part in PLAN.parts:
        norm = part.ops[-1]
        assert isinstance(norm, Norm)
        assert (norm.out, norm.method, norm.eps) == (HIDDEN, "layer", 1e-2)
        assert norm.bias is not None


def test_scores_are_scaled_by_the_width_of_a_head() -> None:
    (attention,) = (op for op in PLAN.parts[1].ops if isinstance(op, EncoderAttention))
    assert (attention.heads, attention.head_dim, attention.scale) == (4, 16, 0.25)


def test_the_feed_forward_network_has_one_activation_and_no_gate() -> None:
    kinds = [op.kind for op in PLAN.parts[2].ops]
    assert kinds == ["linear", "activate", "linear", "add", "norm"]


def test_a_shorter_context_window_keeps_the_table_of_positions() -> None:
    shorter = plan(bert(), 40)
    (position,) = (op for op in shorter.parts[0].ops if isinstance(op, EmbedPosition))
    assert (shorter.context_len, shorter.max_context_len) == (40, 128)
    assert position.table.view_shape == (128, 64)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
        ({"hidden_act": "mish"}, "hidden_act is 'mish'"),
        ({"is_decoder": True}, "is_decoder is True"),
        ({"add_cross_attention": True}, "add_cross_attention is True"),
    ],
)
def test_what_is_not_computed_is_refused_by_name(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedModelError, match=message):
        plan(bert(**fields), None)


@pytest.mark.parametrize("fields", [{"num_key_value_heads": 2}, {"head_dim": 8}])
def test_heads_that_do_not_make_up_the_hidden_size_contradict(fields: dict[str, Any]) -> None:
    with pytest.raises(CheckpointError, match="heads of an encoder"):
        plan(bert(**fields), None)


@pytest.mark.parametrize(
    "field", ["vocab_size", "hidden_size", "max_position_embeddings", "intermediate_size"]
)
def test_sizes_are_required(field: str) -> None:
    config = bert()
    del config[field]
    with pytest.raises(ModelError, match=field):
        plan(config, None)
