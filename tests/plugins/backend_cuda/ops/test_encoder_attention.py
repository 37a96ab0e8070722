"""Attention of encoders: whole sequences, long and short, in any order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from llmd.api.ops import EncoderAttention
from llmd.api.step import Float32
from llmd_backend_cuda.ops.encoder_attention import MAX_HEAD_DIM, launch_encoder_attention
from tests.cuda.one_instruction import OnDevice, OneInstruction, make_step, nmse, one_op, random_rows

BOUND = 3e-6
Values = dict[int, Float32]


def _one(heads: int, head_dim: int, scale: float | None = None) -> OneInstruction:
    op = EncoderAttention("q", "k", "v", "out", heads, head_dim, scale or head_dim**-0.5)
    return OneInstruction(one_op(op, 3), (heads * head_dim,) * 4)


def _values(one: OneInstruction, rows: int) -> Values:
    return {slot: random_rows(rows, one.program.slot_widths[slot], slot) for slot in range(3)}


def _run(one: OneInstruction, lengths: Sequence[int], values: Values, *, order: str | int = 1) -> Float32:
    device = OnDevice(one, make_step(lengths), values, order=order)
    launch = launch_encoder_attention(device.context, one.instruction.ops[0], device.rows)
    (found,) = device.run(launch, 3)
    return found


@pytest.mark.parametrize(
    ("heads", "head_dim", "lengths"),
    [
        (4, 12, (41, 1, 18)),
        (3, 20, (1,)),
        (2, 37, (30, 100)),
        (2, 64, (64, 65, 63)),
        (1, 64, (300,)),
        (2, 80, (70, 3)),
        (2, 128, (33, 40)),
        (1, 255, (20, 17)),
        (1, 256, (70,)),
    ],
)
def test_sequences(heads: int, head_dim: int, lengths: Sequence[int]) -> None:
    one = _one(heads, head_dim)
    values = _values(one, sum(lengths))
    expected = one.reference(make_step(lengths), values)[3]
    assert nmse(_run(one, lengths, values), expected) < BOUND


def test_scores_that_grow_along_the_sequence() -> None:
    one = _one(1, 12, scale=1.0)
    values = _values(one, 150)
    values[1] *= np.linspace(0, 4, 150, dtype=np.float32)[:, None]
    expected = one.reference(make_step((150,)), values)[3]
    assert nmse(_run(one, (150,), values), expected) < BOUND


@pytest.mark.parametrize("head_dim", [20, 64, 96])
def test_a_row_depends_on_its_sequence_only(head_dim: int) -> None:
    one = _one(2, head_dim)
    lengths = (5, 1, 70, 2, 9)
    values = _values(one, sum(lengths))
    values[2][:5] = np.inf  # what other sequences have must not get in
    together = _run(one, lengths, values)
    begin = 6
    for number, order in ((2, 1), (3, "forward"), (4, "reverse")):
        rows = slice(begin, begin + lengths[number])
        alone = {slot: value[rows] for slot, value in values.items()}
        np.testing.assert_array_equal(
            _run(one, lengths[number : number + 1], alone, order=order), together[rows]
        )
        begin = rows.stop


def test_a_head_that_is_too_large_is_refused() -> None:
    one = _one(1, MAX_HEAD_DIM + 1)
    with pytest.raises(ValueError, match="larger"):
        _run(one, (1,), _values(one, 1))
