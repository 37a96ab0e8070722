"""Products of rows and matrices: linear and head."""

from __future__ import annotations

from collections.abc import Iterator

from llmd.api.ops import Head, Linear
from llmd.api.program import SlottedOp
from llmd_backend_vulkan.context import NONE, Context, float_word, stride_of
from llmd_backend_vulkan.matrices import DeviceMatrix, Piece
from llmd_backend_vulkan.runtime import Buffer, Dispatch, Shader

_ROWS = 2
"""Weight rows of 16 threads."""
_MOST_COLS = 8
"""Rows of x that a work group multiplies at once."""
_TEAMS = 4


def linear(context: Context, slotted: SlottedOp) -> list[Dispatch]:
    """Return the dispatches of a linear op: one for each piece of each matrix."""
    assert isinstance(slotted.op, Linear)
    x = slotted.inputs[0]
    found: list[Dispatch] = []
    for number, out in enumerate(slotted.outputs):
        matrix = context.matrix(slotted.weights[2 * number])
        bias = context.vector(slotted.weights[2 * number + 1])
        places = (context.slots[x], context.stride(x), context.slots[out], context.stride(out))
        found += _products(context, matrix, bias, places, context.counts, context.rows)
    return found


def head(context: Context, slotted: SlottedOp, logits: int, outputs: int) -> list[Dispatch]:
    """Return the dispatches of a head, for up to ``outputs`` rows; ``logits`` is a place in ``work``."""
    op = slotted.op
    assert isinstance(op, Head)
    x = slotted.inputs[0]
    matrix = context.matrix(slotted.weights[0])
    bias = context.vector(slotted.weights[1])
    places = (context.slots[x], context.stride(x), logits, stride_of(context.program.vocab_size))
    index = context.place("output_rows")
    count_at = context.counts + 2
    return list(
        _products(context, matrix, bias, places, count_at, outputs, index, op.scale, op.softcap or 0.0)
    )


def _products(
    context: Context,
    matrix: DeviceMatrix,
    bias: tuple[Buffer, int],
    places: tuple[int, int, int, int],
    count_at: int,
    rows: int,
    index: int | None = None,
    scale: float = 1.0,
    softcap: float = 0.0,
) -> Iterator[Dispatch]:
    """Yield a product for each piece of a matrix. ``places``: x, its stride, out, its stride."""
    x, x_stride, out, out_stride = places
    biases, bias_at = bias
    has_bias = bias_at != NONE
    cols = min(1 << (rows - 1).bit_length(), _MOST_COLS)
    own = (_ROWS, cols, int(index is not None), int(has_bias))
    shader = Shader("linear", (*matrix.form.constants, *own))
    for piece in matrix.pieces:
        constants = (
            count_at, x, x_stride, out + piece.first, out_stride, matrix.width, *_layout(piece),
            bias_at + piece.first if has_bias else bias_at, index or 0, float_word(scale), float_word(softcap),
        )  # fmt: skip
        groups = (-(-piece.num_rows // (_TEAMS * _ROWS)), -(-rows // cols), 1)
        work = float(rows) * matrix.width * piece.num_rows
        yield Dispatch(shader, (context.work, piece.region.buffer, biases), constants, groups, work)


def _layout(piece: Piece) -> tuple[int, ...]:
    return (
        piece.num_rows, piece.low_at, piece.high_at, piece.scales_at, piece.row_scales, piece.coarse_at,
        piece.row_coarse, piece.outliers_at,
    )  # fmt: skip
