"""Products of rows and matrices: linear and head."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from llmd.api.ops import Add, Head
from llmd.api.program import SlottedOp
from llmd_backend_vulkan.commands import MOST_WORK, Buffer, Dispatch, Shader
from llmd_backend_vulkan.context import NONE, Context, float_word, stride_of
from llmd_backend_vulkan.matrices import DeviceMatrix, Piece
from llmd_backend_vulkan.tiles import Tile, default_tile, measured_rows

_MANY_CHUNKS = 64


class Residual(msgspec.Struct, frozen=True):
    """What a product is added to."""

    place: int
    """Where its rows are."""
    stride: int
    scale: float
    """Of the product."""


class Target(msgspec.Struct, frozen=True):
    """Where a product reads and writes: places in ``work``."""

    x: int
    x_stride: int
    out: int
    out_stride: int
    count_at: int
    """Where the number of rows is."""
    index: int | None = None
    """Where the numbers of the rows of x are; None: all rows."""
    scale: float = 1.0
    softcap: float = 0.0
    residual: Residual | None = None
    num_groups: int | None = None
    """Of a stack: the number of the groups of rows at ``count_at`` (``experts_assign.comp``)."""


def shader_of(tile: Tile, matrix: DeviceMatrix, target: Target, *, has_bias: bool) -> Shader:
    """Return the shader that multiplies by a matrix with a tile."""
    gather, added = int(target.index is not None), int(target.residual is not None)
    constants = (
        *matrix.form.constants, tile.rows, tile.cols, gather, int(has_bias), lanes_of(matrix), tile.threads, added,
        int(target.num_groups is not None),
    )  # fmt: skip
    if tile.shared_rows:
        return Shader("linear_tiles", (*constants, tile.shared_rows, tile.depth))
    return Shader("linear", constants)


def groups_of(
    tile: Tile, matrix: DeviceMatrix, height: int, rows: int, num_groups: int | None = None
) -> tuple[int, int, int]:
    """Return the work groups for ``height`` rows of a matrix, and ``rows`` rows of x or groups of these."""
    own = tile.shared_rows or tile.threads // lanes_of(matrix) * tile.rows
    return (-(-height // own), -(-rows // tile.all_cols) if num_groups is None else num_groups, 1)


def tile_of(matrix: DeviceMatrix, rows: int) -> Tile:
    """Return the tile for up to ``rows`` rows of x: the fastest one, if that was measured."""
    chosen = matrix.tiles.get(measured_rows(rows))
    return default_tile(rows, matrix.height) if chosen is None else chosen.for_rows(rows)


def lanes_of(matrix: DeviceMatrix) -> int:
    """Return how many threads share a row of a matrix: the order of its sums depends on that."""
    return 32 if -(-matrix.width // matrix.form.chunk) >= _MANY_CHUNKS else 16


def linear(context: Context, slotted: SlottedOp) -> list[Dispatch]:
    """Return the dispatches of a linear op: one or more for each piece of each matrix."""
    found: list[Dispatch] = []
    for number, out in enumerate(slotted.outputs):
        found += _products(context, slotted, number, _target(context, slotted, out), context.rows)
    return found


def linear_and_add(context: Context, slotted: SlottedOp, added: SlottedOp) -> list[Dispatch]:
    """Return the dispatches of a linear op with one output, and of the add that alone reads it as ``b``."""
    op = added.op
    assert isinstance(op, Add)
    residual = Residual(context.slots[added.inputs[0]], context.stride(added.inputs[0]), op.scale)
    target = _target(context, slotted, added.outputs[0])
    target = msgspec.structs.replace(target, residual=residual)
    return list(_products(context, slotted, 0, target, context.rows))


def head(context: Context, slotted: SlottedOp, logits: int, outputs: int) -> list[Dispatch]:
    """Return the dispatches of a head, for up to ``outputs`` rows; ``logits`` is a place in ``work``."""
    op = slotted.op
    assert isinstance(op, Head)
    x = slotted.inputs[0]
    target = Target(
        context.slots[x], context.stride(x), logits, stride_of(context.program.vocab_size), context.counts + 2,
        context.place("output_rows"), op.scale, op.softcap or 0.0,
    )  # fmt: skip
    return list(_products(context, slotted, 0, target, outputs))


def _target(context: Context, slotted: SlottedOp, out: int) -> Target:
    x = slotted.inputs[0]
    places = (context.slots[x], context.stride(x), context.slots[out], context.stride(out))
    return Target(*places, context.counts)


def _products(
    context: Context, slotted: SlottedOp, number: int, target: Target, rows: int
) -> Iterator[Dispatch]:
    """Yield products with an op's matrix of a ``number``, for up to ``rows`` rows."""
    matrix = context.matrix(slotted.weights[2 * number])
    bias = context.vector(slotted.weights[2 * number + 1])
    yield from products(context.work, matrix, bias, target, tile_of(matrix, rows), rows)


def products(
    work: Buffer, matrix: DeviceMatrix, bias: tuple[Buffer, int], target: Target, tile: Tile, rows: int
) -> Iterator[Dispatch]:
    """Yield independent dispatches, which multiply up to ``rows`` rows by a matrix, or by members of a stack.

    ``bias`` is a vector (`Context.vector`).
    """
    biases, bias_at = bias
    has_bias = bias_at != NONE
    shader = shader_of(tile, matrix, target, has_bias=has_bias)
    residual = target.residual or Residual(0, 0, 1.0)
    for piece in cut_by_work(matrix, rows):
        first = piece.first
        constants = (
            target.count_at, target.x, target.x_stride, target.out + first, target.out_stride, matrix.width,
            piece.num_rows, piece.low_at, piece.high_at, piece.scales_at, piece.row_scales, piece.coarse_at,
            piece.row_coarse, piece.outliers_at, bias_at + first if has_bias else bias_at, target.index or 0,
            float_word(target.scale), float_word(target.softcap), residual.place + first, residual.stride,
            float_word(residual.scale), piece.first_member, piece.num_members, matrix.height,
        )  # fmt: skip
        groups = groups_of(tile, matrix, piece.num_rows, rows, target.num_groups)
        amount = float(rows) * matrix.width * piece.num_rows
        yield Dispatch(shader, (work, piece.region.buffer, biases), constants, groups, amount)


def cut_by_work(matrix: DeviceMatrix, rows: int) -> Iterator[Piece]:
    """Yield the pieces of a matrix, cut so that none is more than a submission for ``rows`` rows of x."""
    for piece in matrix.pieces:
        parts = math.ceil(float(rows) * matrix.width * piece.num_rows / MOST_WORK)
        step = -(-piece.num_rows // max(parts, 1))
        for first in range(0, piece.num_rows, step):
            yield _part(matrix, piece, first, min(step, piece.num_rows - first))


def first_rows(matrix: DeviceMatrix, count: int) -> DeviceMatrix:
    """Return the first rows of a matrix or of members of a stack, at most ``count`` of its first piece."""
    piece = matrix.pieces[0]
    kept = min(count, piece.num_rows)
    return msgspec.structs.replace(matrix, height=kept, pieces=(_part(matrix, piece, 0, kept),))


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
