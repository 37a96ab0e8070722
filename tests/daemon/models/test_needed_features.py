"""Features follow from what layers keep and from options of ops."""

from __future__ import annotations

import pytest

from llmd.api import Attention, Embed, Glu, KVGroup, Norm, Op, Rope, RopeTable, Router, TensorRef
from llmd.models.needed_features import needed_features

MATRIX, VECTOR = TensorRef("m", (4, 4)), TensorRef("v", (4,))
TABLE = RopeTable((1.0, 0.1))
ATTENTION = ("q", "k", "v", "o", 0, 0, 1, 1, 4, 0.5)


@pytest.mark.parametrize(
    ("op", "features"),
    [
        (Attention(*ATTENTION), set()),
        (Attention(*ATTENTION, sinks=VECTOR), {"sinks"}),
        (Attention(*ATTENTION, chosen="c", sums="s"), {"chosen_positions", "attention_sums"}),
        (Attention("q", None, None, *ATTENTION[3:]), {"shared_keys"}),
        (Rope("x", "y", 1, 4, TABLE), set()),
        (Rope("x", "y", 1, 4, TABLE, stride=4), {"strides"}),
        (Router("x", "r", MATRIX, 2, "sigmoid"), set()),
        (Router("x", "r", MATRIX, 2, "sqrt_softplus"), {"given_experts"}),
        (Router("x", "r", MATRIX, 2, given="g"), {"given_experts"}),
        (Glu("g", "u", "y", "silu", limit=7.0), {"limits"}),
        (Embed("h", MATRIX, columns=(0, 2)), {"columns"}),
        (Norm("x", "y", VECTOR, 1e-5, own_weights=True), {"own_weights"}),
    ],
    ids=lambda value: value.kind if isinstance(value, Attention) else None,
)
def test_an_option_needs_a_feature(op: Op, features: set[str]) -> None:
    assert needed_features((), (op,)) == features


def test_a_group_needs_features_if_it_has_a_layer_here() -> None:
    group = KVGroup(0, None, 1, 8, (0,), kind="latent", stride=4)
    elsewhere = KVGroup(1, None, 0, 0, (), kind="state", state_bytes=8)
    assert needed_features((group, elsewhere), ()) == {"latent", "strides"}
