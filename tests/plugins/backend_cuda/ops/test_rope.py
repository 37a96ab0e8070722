"""Rotations, at positions of any size."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from llmd.api.device import StageLimits
from llmd.api.ops import Rope, RopeTable
from llmd.api.program import SlottedOp
from llmd.builtin.reference import numerics
from llmd_backend_cuda.context import Context, StepArgs
from llmd_backend_cuda.ops.rope import MAX_PAIRS, launch_rope
from tests.cuda.attention_bench import nmse, rope
from tests.cuda.simt.runtime import SimtRuntime

POSITIONS = np.array([0, 1, 2, 77, 4095, 131071, 1_000_000, 16_777_217], np.int32)


def _turned(op: Rope, x: np.ndarray, positions: np.ndarray, padding: int = 0) -> np.ndarray:
    runtime, rows = SimtRuntime(), len(positions)
    arrays = [np.array([rows, 1, 0, 0], np.int32), positions, x, np.array(op.table.inv_freq)]
    counts, at, source, table = (runtime.allocate(max(array.nbytes, 8)) for array in arrays)
    for memory, array in zip((counts, at, source, table), arrays, strict=True):
        runtime.upload(memory, 0, array)
    out = runtime.allocate(x.nbytes)
    step = StepArgs(counts=counts.pointer, positions=at.pointer)
    context = Context(runtime, None, StageLimits(rows, 1, 1), step, [source, out], (), [table])  # type: ignore[arg-type]
    runtime.launch(launch_rope(context, SlottedOp(op, (0,), (1,), rope=0), rows + padding))
    found = np.empty_like(x)
    runtime.download(found, out, 0)
    return found


@pytest.mark.parametrize(
    "op",
    [
        rope(32, 128, 64),
        rope(3, 12, 6, interleaved=True),
        rope(5, 20, 4, factor=1.3),
        rope(1, 80, 10, interleaved=True),
        rope(2, 7, 3),
        rope(2, 6, 0),
    ],
    ids=lambda op: f"{op.heads}x{op.head_dim}-{op.table.rotary_dim}",
)
def test_heads_are_turned_by_their_position(op: Rope) -> None:
    x = np.random.default_rng(3).standard_normal((len(POSITIONS), op.heads * op.head_dim)).astype(np.float32)
    found = _turned(op, x, POSITIONS, padding=2)
    split = x.reshape(len(x), op.heads, op.head_dim)
    expected = numerics.rotate(split, POSITIONS, op.table, interleaved=op.interleaved).reshape(x.shape)
    assert nmse(found, expected) < 1e-13
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_vectors_have_the_position_of_their_first_token() -> None:
    op = msgspec.structs.replace(rope(3, 12, 6, interleaved=True), stride=4)
    x = np.random.default_rng(5).standard_normal((len(POSITIONS), 36)).astype(np.float32)
    whole = msgspec.structs.replace(op, stride=1)
    np.testing.assert_array_equal(_turned(op, x, POSITIONS), _turned(whole, x, POSITIONS // 4 * 4))


def test_negative_angles_turn_back() -> None:
    there = rope(3, 12, 6, interleaved=True)
    table = RopeTable(tuple(-freq for freq in there.table.inv_freq))
    x = np.random.default_rng(6).standard_normal((len(POSITIONS), 36)).astype(np.float32)
    back = msgspec.structs.replace(there, table=table)
    np.testing.assert_allclose(_turned(back, _turned(there, x, POSITIONS), POSITIONS), x, atol=1e-6)


def test_a_row_has_the_same_bits_alone() -> None:
    op = rope(4, 64, 32)
    x = np.random.default_rng(4).standard_normal((len(POSITIONS), 256)).astype(np.float32)
    together = _turned(op, x, POSITIONS)
    for row in range(len(POSITIONS)):
        np.testing.assert_array_equal(
            _turned(op, x[row : row + 1], POSITIONS[row : row + 1])[0], together[row]
        )


def test_every_quarter_turn_is_exact() -> None:
    table = RopeTable(tuple(np.pi / 2 * n for n in range(5)))
    op = Rope("x", "y", 1, 10, table)
    x = np.tile(np.arange(1, 11, dtype=np.float32), (4, 1))
    positions = np.arange(4, dtype=np.int32)
    expected = numerics.rotate(x[:, None], positions, table, interleaved=False)[:, 0]
    np.testing.assert_allclose(_turned(op, x, positions), expected, atol=1e-6)


def test_more_pairs_than_a_block_keeps_are_refused() -> None:
    with pytest.raises(ValueError, match="pairs"):
        _turned(rope(1, 2048, MAX_PAIRS + 1), np.zeros((1, 2048), np.float32), POSITIONS[:1])
