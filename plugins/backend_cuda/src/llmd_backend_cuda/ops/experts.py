"""The weighted sum of the experts of each row; ``kernels/experts.cuh`` says how rows are grouped."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec

from llmd.api import SlottedOp
from llmd.api.activations import ACTIVATIONS
from llmd.api.expert_ops import Experts
from llmd_backend_cuda.context import Context
from llmd_backend_cuda.expert_memory import ExpertMemory
from llmd_backend_cuda.ops.fastest import FEW_ROWS
from llmd_backend_cuda.ops.gemm_tiles import WarpTile, rows_of_block
from llmd_backend_cuda.ops.linear import (
    Groups,
    Product,
    few_rows_launch,
    is_few,
    joined,
    matrix_of,
    rounds_to_int8,
    tiled_launches,
)
from llmd_backend_cuda.ops.product_args import ExpertGateArgs, OutputArgs, RowsArgs
from llmd_backend_cuda.runtime import KernelSpec, Launch

MAX_EXPERTS = 1024
"""Most experts of a layer: threads of a block."""

_COLUMNS = 256
_ROUTE_BYTES = 8


class ExpertsArgs(ctypes.Structure):
    """``struct Args`` of ``kernels/experts.cu``."""

    _fields_ = (
        ("counts", ctypes.c_void_p),
        ("routes", ctypes.c_void_p),
        ("groups", ctypes.c_void_p),
        ("assigned", ctypes.c_void_p),
        ("row_numbers", ctypes.c_void_p),
        ("places", ctypes.c_void_p),
        ("gate", ctypes.c_void_p),
        ("up", ctypes.c_void_p),
        ("activated", ctypes.c_void_p),
        ("outputs", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("of_gate", ExpertGateArgs),
        ("experts", ctypes.c_int32),
        ("top_k", ctypes.c_int32),
        ("inner", ctypes.c_int32),
        ("width", ctypes.c_int32),
        ("most_groups", ctypes.c_int32),
        ("group_rows", ctypes.c_int32),
        ("used", ctypes.c_void_p),
    )


def experts_launches(
    context: Context, slotted: SlottedOp, rows: int, memory: ExpertMemory
) -> Iterator[Launch]:
    """Yield the launches of a mixture: group rows, multiply them by their experts' matrices, add up."""
    op = slotted.op
    assert isinstance(op, Experts)
    args = _args(context, slotted, memory)
    first, down = _products(context, slotted, memory)
    few = rows <= FEW_ROWS and all(is_few(one, rows, context.runtime.shared_bytes) for one in (*first, down))
    assigned = rows * op.top_k
    tile_rows = FEW_ROWS if few else min(_tile_rows(context, one, assigned, op) for one in (*first, down))
    cached = context.cached.get(slotted.weights[4] or 0)
    blocks = 0
    if cached is not None:
        blocks, args.used = cached.blocks, cached.used
    groups = Groups(memory.groups.pointer, most_groups(assigned, op.num_experts, tile_rows), blocks)
    args.most_groups, args.group_rows = groups.most, tile_rows
    yield _launch(context, "assign_rows", args, (1, 1, 1), MAX_EXPERTS)
    is_pair = few and len(first) == 1 and len(first[0].matrices) == 2
    if is_pair:
        first[0] = msgspec.structs.replace(first[0], is_pair=True, gate=args.of_gate)
    for product in first:
        yield from _multiply(context, product, groups, rows, assigned, tile_rows, few=few)
    if not is_pair:
        yield _launch(context, "gate_rows", args, (assigned, -(-args.inner // _COLUMNS), 1))
    yield from _multiply(context, down, groups, rows, assigned, tile_rows, few=few)
    grid = (rows, -(-args.width // _COLUMNS), 1)
    yield _launch(context, "sum_rows", args, grid, shared_bytes=_ROUTE_BYTES * op.top_k)


def most_groups(assigned: int, experts: int, group_rows: int) -> int:
    """Return the most groups of assigned rows, whatever experts they use."""
    used = min(assigned, experts)
    return used + (assigned - used) // group_rows


def _args(context: Context, slotted: SlottedOp, memory: ExpertMemory) -> ExpertsArgs:
    op = slotted.op
    assert isinstance(op, Experts)
    experts, width, inner = op.down.view_shape
    limit = math.inf if op.limit is None else op.limit
    return ExpertsArgs(
        counts=context.step.counts,
        routes=context.slot(slotted.inputs[1]),
        groups=memory.groups.pointer,
        assigned=memory.assigned.pointer,
        row_numbers=memory.row_numbers.pointer,
        places=memory.places.pointer,
        gate=None if op.gate is None else memory.gate.pointer,
        up=memory.up.pointer,
        activated=memory.gate.pointer,
        outputs=memory.outputs.pointer,
        out=context.slot(slotted.outputs[0]),
        of_gate=ExpertGateArgs(limit, op.offset, ACTIVATIONS.index(op.activation)),
        experts=experts,
        top_k=op.top_k,
        inner=inner,
        width=width,
    )


def _products(context: Context, slotted: SlottedOp, memory: ExpertMemory) -> tuple[list[Product], Product]:
    """Return the products of the rows of the step, one for each form of matrices, and that of ``down``."""
    hidden = context.program.slot_widths[slotted.inputs[0]]
    count = memory.assigned.pointer
    rows = RowsArgs(
        x=context.slot(slotted.inputs[0]), chosen=memory.row_numbers.pointer, width=hidden, count=count
    )
    gate, up, down = (slotted.weights[place : place + 2] for place in (0, 2, 4))
    single = [
        _product(context, rows, weights, out.pointer)
        for weights, out in ((gate, memory.gate), (up, memory.up))
        if weights[0] is not None
    ]
    first = [joined(list(alike)) for _, alike in groupby(single, key=lambda product: product.form)]
    activated = RowsArgs(x=memory.gate.pointer, width=single[0].outputs[0].width, count=count)
    return first, _product(context, activated, down, memory.outputs.pointer)


def _product(context: Context, rows: RowsArgs, weights: Sequence[int | None], out: int) -> Product:
    matrix = matrix_of(context, weights[0])
    output = OutputArgs(
        out=out,
        bias=context.vector(weights[1]),
        scale=1.0,
        width=matrix.size.out,
        tiles=matrix.size.tiles,
    )
    return Product(rows, [output], [matrix], int8=rounds_to_int8(context, matrix))


def _tile_rows(context: Context, product: Product, assigned: int, op: Experts) -> int:
    """Return the rows of a block: about twice those that an expert has on average."""
    mean = -(-assigned // op.num_experts)
    return rows_of_block(product.form, 2 * mean, context.runtime.shared_bytes, int8=product.int8)


def _multiply(
    context: Context,
    product: Product,
    groups: Groups,
    rows: int,
    assigned: int,
    tile_rows: int,
    *,
    few: bool,
) -> Iterator[Launch]:
    grouped = msgspec.structs.replace(product, groups=groups)
    if few:
        yield few_rows_launch(context, grouped, rows)
        return
    tile = WarpTile(tile_rows, split=False, int8=product.int8)
    yield from tiled_launches(context, grouped, assigned, tile)


def _launch(
    context: Context,
    name: str,
    args: ExpertsArgs,
    grid: tuple[int, int, int],
    threads: int = _COLUMNS,
    shared_bytes: int = 0,
) -> Launch:
    kernel = context.runtime.kernel(KernelSpec.of("experts", name))
    return Launch(kernel, grid, threads, args, shared_bytes, overlaps=True)
