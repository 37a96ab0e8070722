"""Products of rows and matrices: linear and head."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from llmd.api.ops import Head, Linear
from llmd.api.program import SlottedOp
from llmd_backend_vulkan.context import NONE, Context, float_word, stride_of
from llmd_backend_vulkan.matrices import DeviceMatrix, Piece
from llmd_backend_vulkan.runtime import MOST_WORK, Buffer, Dispatch, Shader

_MANY_CHUNKS = 64


class Tile(msgspec.Struct, frozen=True):
    """What a work group computes. It does not change the bits of a result."""

    rows: int
    """Weight rows of the threads that share a row."""
    cols: int
    """Rows of x."""
    threads: int

    def constants(self, lanes: int, *, gather: bool, has_bias: bool) -> tuple[int, ...]:
        """Return the constants of the shader after those of the matrix."""
        return (self.rows, self.cols, int(gather), int(has_bias), lanes, self.threads)


def tile_of(rows: int) -> Tile:
    """Return the tile for up to ``rows`` rows of x."""
    cols = min(1 << (rows - 1).bit_length(), 8)
    return Tile(4, cols, 256 if rows > cols else 64)


def lanes_of(matrix: DeviceMatrix) -> int:
    """Return how many threads share a row of a matrix: the order of its sums depends on that."""
    return 32 if -(-matrix.width // matrix.form.chunk) >= _MANY_CHUNKS else 16


def linear(context: Context, slotted: SlottedOp) -> list[Dispatch]:
    """Return the dispatches of a linear op: one or more for each piece of each matrix."""
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
    tile, lanes = tile_of(rows), lanes_of(matrix)
    own = tile.constants(lanes, gather=index is not None, has_bias=has_bias)
    shader = Shader("linear", (*matrix.form.constants, *own))
    for piece in cut_by_work(matrix, rows):
        constants = (
            count_at, x, x_stride, out + piece.first, out_stride, matrix.width, piece.num_rows, piece.low_at,
            piece.high_at, piece.scales_at, piece.row_scales, piece.coarse_at, piece.row_coarse,
            piece.outliers_at, bias_at + piece.first if has_bias else bias_at, index or 0, float_word(scale),
            float_word(softcap),
        )  # fmt: skip
        groups = (-(-piece.num_rows // (tile.threads // lanes * tile.rows)), -(-rows // tile.cols), 1)
        work = float(rows) * matrix.width * piece.num_rows
        yield Dispatch(shader, (context.work, piece.region.buffer, biases), constants, groups, work)


def cut_by_work(matrix: DeviceMatrix, rows: int) -> Iterator[Piece]:
    """Yield the pieces of a matrix, cut so that none is more than a submission for ``rows`` rows of x."""
    for piece in matrix.pieces:
        parts = math.ceil(float(rows) * matrix.width * piece.num_rows / MOST_WORK)
        step = -(-piece.num_rows // max(parts, 1))
        for first in range(0, piece.num_rows, step):
            yield _part(matrix, piece, first, min(step, piece.num_rows - first))


def _part(matrix: DeviceMatrix, piece: Piece, first: int, num_rows: int) -> Piece:
    """Return some rows of a piece."""
    form = matrix.form
    chunks = -(-matrix.width // form.chunk)
    groups = -(-matrix.width // form.group) if form.group else 1
    return msgspec.structs.replace(
        piece,
        first=piece.first + first,
        num_rows=num_rows,
        low_at=piece.low_at + first * matrix.row_words,
        high_at=piece.high_at + first * chunks * form.chunk * form.high // 32,
        scales_at=piece.scales_at + first * piece.row_scales,
        coarse_at=piece.coarse_at + first * piece.row_coarse,
        outliers_at=piece.outliers_at + first * groups * 2,
    )
