from __future__ import annotations

import pytest

from llmd.api.plan import ModelPlan
from llmd.models.lowering import lower
from llmd.profiling.plans import HEAD_DIM, VOCAB, attention_plan, feed_forward_plan

PLANS = [feed_forward_plan(48, 96, 3), attention_plan(48, 4, 2, 3, context_len=100)]


@pytest.mark.parametrize("plan", PLANS)
def test_each_layer_is_one_part_and_every_plan_can_be_lowered(plan: ModelPlan) -> None:
    assert [part.kind for part in plan.parts][:: len(plan.parts) - 1] == ["embed", "head"]
    assert len({part.kind for part in plan.parts[1:-1]}) == 1
    assert plan.num_layers == 3
    program = lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32")
    assert program.has_head
    assert program.vocab_size == VOCAB


def test_a_feed_forward_layer_has_three_matrices() -> None:
    shapes = [ref.shape for ref in PLANS[0].tensor_refs() if ref.name.startswith("0.")]
    assert sorted(shapes) == [(48,), (48, 96), (96, 48), (96, 48)]


def test_layers_of_attention_share_one_group() -> None:
    (group,) = PLANS[1].groups
    assert (group.kv_heads, group.head_dim, group.layers, group.window) == (2, HEAD_DIM, (0, 1, 2), None)
    assert PLANS[1].context_len == 100
