"""The weight of each expert for each row."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

from llmd.api import Program, SlottedOp, StageLimits
from llmd.api.encoding import SCORES
from llmd.api.expert_ops import Router
from llmd_backend_cuda.context import Context
from llmd_backend_cuda.ops.embed import FORMATS, Table, vector_of
from llmd_backend_cuda.runtime import KernelSpec, Launch, Memory

_WARPS = 8
_ROWS = 4
"""Experts and rows of a block of ``router_products``."""


class RouterArgs(ctypes.Structure):
    """``struct Args`` of ``kernels/router.cu``."""

    _fields_ = (
        ("counts", ctypes.c_void_p),
        ("x", ctypes.c_void_p),
        ("weight", ctypes.c_void_p),
        ("products", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
        ("correction", ctypes.c_void_p),
        ("gains", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("width", ctypes.c_int32),
        ("experts", ctypes.c_int32),
        ("top_k", ctypes.c_int32),
        ("score", ctypes.c_int32),
        ("is_normalized", ctypes.c_int32),
        ("groups", ctypes.c_int32),
        ("top_groups", ctypes.c_int32),
        ("adds_two", ctypes.c_int32),
        ("factor", ctypes.c_float),
        ("scale", ctypes.c_float),
        ("given", ctypes.c_void_p),
    )


def router_launches(
    context: Context, slotted: SlottedOp, rows: int, table: Table, products: Memory
) -> Iterator[Launch]:
    """Yield the launches of a router: its products, then the weights.

    ``products`` is memory of `products_bytes`.
    """
    op = slotted.op
    assert isinstance(op, Router)
    experts, width = op.weight.view_shape
    args = RouterArgs(
        context.step.counts,
        context.slot(slotted.inputs[0]),
        table.pointer,
        products.pointer,
        *(context.vector(index) for index in slotted.weights[1:]),
        context.slot(slotted.outputs[0]),
        width,
        experts,
        op.top_k,
        SCORES.index(op.score),
        op.normalized,
        op.groups,
        op.top_groups,
        op.group_score == "sum_of_two",
        op.factor,
        op.scale,
        context.slot(slotted.inputs[1]) if op.given else None,
    )
    defines = {"FORMAT": FORMATS[table.format], "VECTOR": vector_of(width, table)}
    multiply, choose = (
        context.runtime.kernel(KernelSpec.of("router", name, defines))
        for name in ("router_products", "router")
    )
    grid = (-(-experts // _WARPS), -(-rows // _ROWS), 1)
    yield Launch(multiply, grid, 32 * _WARPS, args, overlaps=True)
    yield Launch(choose, (rows, 1, 1), 32, args, 4 * (2 * experts + op.groups), overlaps=True)


def products_bytes(program: Program, limits: StageLimits) -> int:
    """Return the bytes of the products of the largest router, float32 ``[max_rows, experts]``."""
    ops = (slotted.op for slotted in program.ops)
    experts = [op.weight.view_shape[0] for op in ops if isinstance(op, Router)]
    return 4 * limits.max_rows * max(experts, default=0)
