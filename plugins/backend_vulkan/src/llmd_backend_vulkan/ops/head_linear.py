"""Products with a matrix for each head: heads are members of a stack, and all rows use each of them."""

from __future__ import annotations

from llmd.api import Program, StageLimits
from llmd.api.latent_ops import HeadLinear
from llmd.api.program import SlottedOp
from llmd_backend_vulkan.commands import Dispatch, Shader
from llmd_backend_vulkan.context import Context, stride_of
from llmd_backend_vulkan.ops.linear import Target, products, tile_of

SLICES, PRODUCTS, GROUPS = "slices of heads", "products of heads", "groups of heads"
"""Names of scratch memory (``shaders/heads_split.comp``)."""

_GROUP_WORDS = 4
_THREADS = 64


def head_linear(context: Context, slotted: SlottedOp) -> list[list[Dispatch]]:
    """Return the phases of the op: split rows into heads, multiply, join."""
    op = slotted.op
    assert isinstance(op, HeadLinear)
    x, out, rows, matrix = (
        slotted.inputs[0],
        slotted.outputs[0],
        context.rows,
        context.matrix(slotted.weights[0]),
    )
    slices, multiplied, groups = (context.scratch[name] for name in (SLICES, PRODUCTS, GROUPS))
    tile = tile_of(matrix, rows)
    split = (
        context.counts, context.slots[x], context.stride(x), slices, stride_of(matrix.width), matrix.width, rows,
        groups, tile.all_cols,
    )  # fmt: skip
    target = Target(
        slices, stride_of(matrix.width), multiplied, stride_of(matrix.height), groups,
        num_groups=op.heads * -(-rows // tile.all_cols),
    )  # fmt: skip
    join = (
        context.counts, multiplied, stride_of(matrix.height), matrix.height, rows, context.slots[out],
        context.stride(out), op.heads * matrix.height,
    )  # fmt: skip
    joined = (-(-op.heads * matrix.height // _THREADS), rows, 1)
    return [
        [Dispatch(Shader("heads_split"), (context.work,), split, (rows, op.heads, 1))],
        list(products(context.work, matrix, context.vector(None), target, tile, rows * op.heads)),
        [Dispatch(Shader("heads_join"), (context.work,), join, joined)],
    ]


def head_linear_words(program: Program, limits: StageLimits) -> dict[str, int]:
    """Return the words of scratch memory that the largest of these ops of a program needs, by name."""
    ops = [slotted.op for slotted in program.ops if isinstance(slotted.op, HeadLinear)]
    sizes = [_words(op, limits.max_rows) for op in ops]
    return {name: max(one[name] for one in sizes) for name in (sizes[0] if sizes else ())}


def _words(op: HeadLinear, rows: int) -> dict[str, int]:
    heads, outer, inner = op.weight.view_shape
    return {
        SLICES: heads * rows * stride_of(inner),
        PRODUCTS: heads * rows * stride_of(outer),
        GROUPS: heads * rows * _GROUP_WORDS,
    }
