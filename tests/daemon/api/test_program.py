from __future__ import annotations

from llmd.api import Instruction, Program
from llmd.models.lowering import lower
from llmd.testing.plans import TinyModel


def test_only_a_program_that_reaches_the_end_has_the_head(program: Program) -> None:
    plan = TinyModel().plan()
    front = lower(plan, 0, 3, format_of=lambda _kind, _ref: "f32")
    assert program.has_head
    assert not front.has_head


def test_a_pattern_names_the_kinds_in_order(program: Program) -> None:
    first, second = program.instructions[:2]
    assert Instruction((*first.ops, *second.ops)).pattern == ("embed", "norm")
