from __future__ import annotations

from collections.abc import Mapping

import pytest

from llmd.api import CheckpointError, Embed, GeneralizedDelta, Head, Linear, Norm, UnsupportedModelError
from llmd.builtin.architectures.rwkv7 import plan
from tests.golden.models.catalog import tiny_model

CONFIG = tiny_model("rwkv7").config
ODD = tiny_model("rwkv7-odd").config


def without(*names: str) -> dict[str, object]:
    return {name: value for name, value in CONFIG.items() if name not in names}


def ranks(config: Mapping[str, object]) -> dict[str, int]:
    """Return the ranks of the second layer by what they are of."""
    made = plan(config, None)
    linears = (op for op in made.parts[2].ops if isinstance(op, Linear))
    weights = (weight for op in linears for weight in op.weights)
    return {ref.name[20]: ref.shape[0] for ref in weights if ref.name.endswith("lora.0.weight")}


def test_a_layer_is_one_part_with_one_state() -> None:
    made = plan(CONFIG, None)
    assert [part.kind for part in made.parts] == ["embed", "mixer", "mixer", "mixer", "head"]
    (group,) = made.groups
    assert (group.kind, group.layers, group.state_bytes) == ("state", (0, 1, 2), 4 * (2 * 64 + 4 * 16 * 16))
    assert (made.max_context_len, plan(CONFIG, 100).context_len) == (1 << 20, 100)


def test_the_embedding_is_normed_before_the_first_layer() -> None:
    table, norm = plan(CONFIG, None).parts[0].ops
    assert isinstance(table, Embed)
    assert isinstance(norm, Norm)
    assert norm.weight is not None
    assert norm.weight.name == "model.layers.0.pre_norm.weight"
    assert len(plan({**CONFIG, "norm_first": False}, None).parts[0].ops) == 1


def test_norms_have_biases_and_heads_are_tied_if_the_configuration_says_so() -> None:
    for config, has_bias, head_name in (
        (CONFIG, True, "lm_head.weight"),
        (ODD, False, "model.embeddings.weight"),
    ):
        norm, head = plan(config, None).parts[-1].ops
        assert isinstance(norm, Norm)
        assert isinstance(head, Head)
        assert (norm.bias is not None, head.weight.name) == (has_bias, head_name)


def test_sizes_that_are_not_stated_follow_from_others() -> None:
    names = [f"{name}_low_rank_dim" for name in ("decay", "a", "v", "gate")]
    assert ranks(CONFIG) == {"w": 24, "a": 16, "v": 8, "g": 32}
    wide = {**without(*names, "intermediate_size"), "hidden_size": 4096, "head_dim": 64}
    assert ranks(wide) == {"w": 160, "a": 160, "v": 96, "g": 320}
    last = [op for op in plan(wide, None).parts[1].ops if isinstance(op, Linear)][-1]
    assert last.weights[0].shape == (4096, 16384)


def test_heads_follow_from_their_number_or_their_size() -> None:
    delta = next(op for op in plan({**without("head_dim"), "num_heads": 8}, None).parts[1].ops
                 if isinstance(op, GeneralizedDelta))  # fmt: skip
    assert (delta.heads, delta.head_dim) == (8, 8)
    with pytest.raises(CheckpointError, match="1 heads of 48 elements do not add up to hidden_size 64"):
        plan({**CONFIG, "head_dim": 48}, None)


@pytest.mark.parametrize(("name", "value"), [("attn", {"layers": [1]}), ("hidden_act", "silu")])
def test_what_is_not_supported_is_refused(name: str, value: object) -> None:
    with pytest.raises(UnsupportedModelError, match=name):
        plan({**CONFIG, name: value}, None)
