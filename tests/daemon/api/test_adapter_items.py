"""Rows with adapters are grouped by adapter, up to eight at a time."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from llmd.api import Instruction, ModelPlan, Program, StageLimits, Step
from llmd.api.adapter_items import (
    ITEM,
    ROWS,
    applies_adapters,
    has_adapters,
    middle_size,
    most_items,
    num_ints,
    pack_items,
    without_adapters,
)
from llmd.api.program import Pattern
from llmd.models.lowering import lower
from llmd.testing.adapter_cases import adapted_model
from llmd.testing.plans import TinyModel

PATTERNS: tuple[Pattern, ...] = (
    ("norm", "linear", "glu"),
    ("norm", "linear", "adapt", "glu"),
    ("linear", "add"),
    ("linear", "adapt", "add"),
)


def lowered(plan: ModelPlan) -> Program:
    return lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32", patterns=PATTERNS)


PROGRAM = lowered(adapted_model())
"""Its model has two adapters."""
PLAIN = lowered(TinyModel().plan())


def step(*sequences: tuple[int, int]) -> Step:
    """Return a step of sequences of (rows, adapter)."""
    counts, numbers = zip(*sequences, strict=True)
    rows = np.zeros(sum(counts), np.int32)
    offsets = np.cumsum([0, *counts], dtype=np.int32)
    no_copies = np.zeros((0, 3), np.int32)
    return Step(rows, rows, offsets, (), no_copies, adapters=np.array(numbers, np.int32))


def packed(given: Step, most: int) -> tuple[list[list[int]], list[int]]:
    """Return the items and the rows that are written."""
    out = np.full(ITEM * most + given.num_rows, -7, np.int32)
    out[: ITEM * most] = 0
    pack_items(out, given, most)
    return out[: ITEM * most].reshape(most, ITEM).tolist(), out[ITEM * most :].tolist()


def test_rows_of_an_adapter_are_together_in_items_of_eight() -> None:
    items, rows = packed(step((3, 1), (1, -1), (2, 0), (9, 1)), 4)
    assert items == [[0, 0, 2, 0], [1, 2, 8, 0], [1, 10, 4, 0], [0, 0, 0, 0]]
    assert rows == [4, 5, 0, 1, 2, *range(6, 15), -7]


@pytest.mark.parametrize(("rows", "sequences"), [(1, 5), (2, 5), (8, 1), (8, 9), (33, 2), (64, 64)])
def test_there_is_room_for_the_items_of_any_step(rows: int, sequences: int) -> None:
    limits = StageLimits(rows, sequences, 1)
    most = most_items(PROGRAM, limits)
    for of_first in range(rows + 1):
        if sequences == 1 and 0 < of_first < rows:
            continue
        items, _ = packed(step((of_first, 0), (rows - of_first, 1)), most + 9)
        used = [item for item in items if item[2]]
        assert sum(count for _, _, count, _ in used) == rows
        assert len(used) <= most
    assert num_ints(PROGRAM, limits) == ITEM * most + rows
    assert num_ints(PLAIN, limits) == 0
    assert middle_size(PROGRAM, limits) == most * ROWS * 27, "queries, keys and values of the second adapter"
    assert middle_size(PLAIN, limits) == 0


def test_steps_without_adapters_are_told_apart() -> None:
    assert has_adapters(PROGRAM, step((1, -1), (1, 1)))
    assert not has_adapters(PROGRAM, step((1, -1), (1, -1)))
    assert not has_adapters(PROGRAM, msgspec.structs.replace(step((1, 1)), adapters=None))
    assert not has_adapters(PLAIN, step((1, 1)))


def without(program: Program) -> list[Instruction]:
    return [without_adapters(one) for one in program.instructions]


def test_without_adapters_the_instructions_are_those_of_the_plain_model() -> None:
    assert applies_adapters(PROGRAM)
    assert not applies_adapters(PLAIN)
    found = [one.pattern for one in without(PROGRAM) if one.ops]
    assert found == [one.pattern for one in PLAIN.instructions]
    assert without(PLAIN) == list(PLAIN.instructions)
