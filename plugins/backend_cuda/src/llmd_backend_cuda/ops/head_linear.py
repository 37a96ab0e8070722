"""A matrix for each head: the products of the slices of rows with the members of a stack."""

from __future__ import annotations

from collections.abc import Iterator

from llmd.api import HeadLinear, SlottedOp
from llmd_backend_cuda.context import Context
from llmd_backend_cuda.ops.gemm_tiles import WarpTile, rows_of_block
from llmd_backend_cuda.ops.linear import (
    Product,
    few_rows_launch,
    is_few,
    matrix_of,
    rounds_to_int8,
    tiled_launches,
)
from llmd_backend_cuda.ops.product_args import OutputArgs, RowsArgs
from llmd_backend_cuda.runtime import Launch


def head_linear_launches(context: Context, slotted: SlottedOp, rows: int) -> Iterator[Launch]:
    """Yield the launches of the products of all heads.

    Their blocks are not measured: they are those of products without heads.
    """
    op = slotted.op
    assert isinstance(op, HeadLinear)
    matrix = matrix_of(context, slotted.weights[0])
    size = matrix.size
    output = OutputArgs(out=context.slot(slotted.outputs[0]), scale=1.0, width=size.out, tiles=size.tiles)
    x = RowsArgs(x=context.slot(slotted.inputs[0]), width=size.width)
    int8 = rounds_to_int8(context, matrix)
    product = Product(x, [output], [matrix], int8=int8, heads=op.heads)
    shared_bytes = context.runtime.shared_bytes
    if is_few(product, rows, shared_bytes):
        yield few_rows_launch(context, product, rows)
        return
    tile = WarpTile(rows_of_block(size.form, rows, shared_bytes, int8=int8), split=False, int8=int8)
    yield from tiled_launches(context, product, rows, tile)
