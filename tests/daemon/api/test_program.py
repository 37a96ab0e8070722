from __future__ import annotations

from llmd.api import Instruction, Program
from llmd.models.lowering import lower
from llmd.testing.encoder_plan import TinyEncoder
from llmd.testing.plans import TinyModel


def test_only_a_program_that_reaches_the_end_has_the_head(program: Program) -> None:
    plan = TinyModel().plan()
    front = lower(plan, 0, 3, format_of=lambda _kind, _ref: "f32")
    assert program.has_head
    assert not front.has_head


def test_a_pattern_names_the_kinds_in_order(program: Program) -> None:
    first, second = program.instructions[:2]
    assert Instruction((*first.ops, *second.ops), 0, second.outputs).pattern == ("embed", "norm")


def test_what_leaves_is_as_wide_as_what_the_last_part_writes(program: Program) -> None:
    plan = TinyEncoder(labels=3).plan()
    count = len(plan.parts)
    whole, front = (lower(plan, 0, n, format_of=lambda _kind, _ref: "f32") for n in (count, count - 1))
    assert [whole.output_size, front.output_size, program.output_size] == [3, plan.hidden_size, 0]


def test_token_types_are_the_rows_of_their_table(program: Program) -> None:
    encoder = lower(TinyEncoder().plan(), 0, 2, format_of=lambda _kind, _ref: "f32")
    assert [encoder.num_token_types, program.num_token_types] == [2, 1]
