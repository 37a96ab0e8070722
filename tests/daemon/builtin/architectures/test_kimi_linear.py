from __future__ import annotations

from typing import Any

import pytest

from llmd.api import Attention, Experts, GatedDelta, Rope, UnsupportedModelError
from llmd.builtin.architectures.kimi_linear import plan
from tests.golden.models.catalog import tiny_model

CONFIG = tiny_model("kimi-linear").config
ODD = tiny_model("kimi-linear-odd").config


def layers_with(config: dict[str, Any], kind: type) -> list[int | None]:
    return [part.layer for part in plan(config, None).parts for op in part.ops if isinstance(op, kind)]


def test_layers_of_full_attention_are_counted_from_1() -> None:
    assert layers_with(dict(CONFIG), Attention) == [2]
    assert layers_with(dict(CONFIG), GatedDelta) == [0, 1, 3]
    assert layers_with(dict(ODD), Attention) == [0, 3]


def test_attention_has_no_positions_and_keeps_latent_vectors() -> None:
    made = plan(CONFIG, None)
    assert not any(isinstance(op, Rope) for part in made.parts for op in part.ops)
    states, latent = made.groups
    assert (states.kind, states.layers, latent.kind, latent.layers) == ("state", (0, 1, 3), "latent", (2,))
    assert states.state_bytes == 4 * (3 * 3 * 96 + 4 * 24 * 24)
    assert (latent.key_dim, latent.value_dim) == (64 + 16, 64)
    assert made.max_context_len == 128


def test_the_first_layers_have_no_experts() -> None:
    assert layers_with(dict(CONFIG), Experts) == [1, 2, 3]
    assert layers_with(dict(ODD), Experts) == [2, 3]


@pytest.mark.parametrize(
    ("name", "value"),
    [("mla_use_nope", False), ("moe_router_activation_func", "softmax"), ("moe_layer_freq", 2)],
)
def test_variants_that_no_published_model_has_are_refused(name: str, value: object) -> None:
    with pytest.raises(UnsupportedModelError, match=name):
        plan({**CONFIG, name: value}, None)
