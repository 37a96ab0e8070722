from __future__ import annotations

from llmd.api import HIDDEN, HeadLinear, ModelPlan, Part, StageLimits, TensorRef, step_buffer_bytes
from llmd.models.lowering import lower
from llmd.testing.plans import TinyModel

PLAN = TinyModel().plan()


def test_a_stage_has_slots_for_one_step_and_results_for_every_ticket() -> None:
    limits = StageLimits(max_rows=7, max_sequences=2, max_outputs=3, tickets=5)
    last, first = len(PLAN.parts), 1
    head = lower(PLAN, first, last, format_of=lambda _kind, _ref: "f32")
    middle = lower(PLAN, first, last - 1, format_of=lambda _kind, _ref: "f32")
    assert step_buffer_bytes(head, limits) == 4 * (7 * sum(head.slot_widths) + 5 * 3 * 2 * 131)
    assert step_buffer_bytes(middle, limits) == 4 * (7 * sum(middle.slot_widths) + 5 * 7 * 40)


def test_a_row_needs_room_for_each_of_its_experts() -> None:
    limits = StageLimits(max_rows=7, max_sequences=2, max_outputs=3, tickets=1)
    model = TinyModel(layers=1, hidden=40, ffn=72, experts=5, top_k=3)
    part = lower(model.plan(), 2, 3, format_of=lambda _kind, _ref: "f32")
    slots = sum(part.slot_widths)
    assert step_buffer_bytes(part, limits) == 4 * 7 * (slots + 3 * 2 * (40 + 72) + 40)


def test_a_row_needs_room_for_what_the_matrices_of_heads_read_and_write() -> None:
    limits = StageLimits(max_rows=7, max_sequences=2, max_outputs=3, tickets=1)
    op = HeadLinear(HIDDEN, HIDDEN, TensorRef("heads", (4, 10, 10), is_stack=True))
    parts = (Part("before", "ffn", 0, ()), Part("tested", "mixer", 0, (op,)), Part("after", "ffn", 0, ()))
    part = lower(ModelPlan("t", 40, 5, 16, 16, (), parts), 1, 2, format_of=lambda _kind, _ref: "f32")
    assert step_buffer_bytes(part, limits) == 4 * 7 * (sum(part.slot_widths) + 4 * 20 + 40)
