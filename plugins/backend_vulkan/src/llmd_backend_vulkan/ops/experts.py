"""The weighted sum of the experts of each row. ``shaders/experts_assign.comp`` says how rows are grouped."""

from __future__ import annotations

from collections.abc import Iterator

from llmd.api import Program, StageLimits
from llmd.api.activations import ACTIVATIONS
from llmd.api.expert_ops import Experts
from llmd.api.program import SlottedOp
from llmd_backend_vulkan.commands import Dispatch, Shader
from llmd_backend_vulkan.context import Context, float_word, stride_of
from llmd_backend_vulkan.matrices import DeviceMatrix
from llmd_backend_vulkan.ops.linear import Target, products, tile_of
from llmd_backend_vulkan.tiles import Tile, default_tile

GROUPS, ASSIGNED, ROW_NUMBERS, PLACES, GATES, UPS, OUTPUTS = (
    "expert groups", "assigned rows", "row numbers", "expert places", "expert gates", "expert ups", "expert outputs",
)  # fmt: skip
"""Names of scratch memory; the shader says what is there."""

_GROUP_WORDS = 4
_ELEMENTS = 256
_NO_LIMIT = 3.4028234663852886e38
"""The largest float32: Vulkan lets compilers assume that no number is infinite."""


def experts(context: Context, slotted: SlottedOp) -> list[list[Dispatch]]:
    """Return the phases of a mixture: group rows, multiply, activate, multiply, add."""
    op = slotted.op
    assert isinstance(op, Experts)
    gate, up, down = (slotted.weights[place : place + 2] for place in (0, 2, 4))
    used = [weights for weights in (gate, up, down) if weights[0] is not None]
    matrices = [context.matrix(weights[0]) for weights in used]
    per_expert = min(context.rows, 2 * -(-context.rows * op.top_k // op.num_experts))
    group_rows = min(tile_of(matrix, per_expert).all_cols for matrix in matrices)
    num_groups = most_groups(context.rows * op.top_k, op.num_experts, group_rows)
    x, (_, width, inner) = slotted.inputs[0], op.down.view_shape
    groups, of_gate, of_up = (context.scratch[name] for name in (GROUPS, GATES, UPS))
    first = [of_up] if gate[0] is None else [of_gate, of_up]
    targets = [
        Target(
            context.slots[x], context.stride(x), out, stride_of(inner), groups, context.scratch[ROW_NUMBERS],
            num_groups=num_groups,
        )
        for out in first
    ]  # fmt: skip
    targets.append(
        Target(
            of_up, stride_of(inner), context.scratch[OUTPUTS], stride_of(width), groups, num_groups=num_groups
        )
    )
    multiplied = [
        list(_products(context, op, matrix, weights[1], target, _tile(matrix, per_expert, group_rows)))
        for matrix, weights, target in zip(matrices, used, targets, strict=True)
    ]
    return [
        [_assign(context, slotted, num_groups, group_rows)],
        [one for dispatches in multiplied[:-1] for one in dispatches],
        [_activate(context, op)],
        multiplied[-1],
        [_sum(context, slotted)],
    ]


def most_groups(assigned: int, num_experts: int, group_rows: int) -> int:
    """Return the most groups of assigned rows, whatever experts they use."""
    used = min(assigned, num_experts)
    return used + (assigned - used) // group_rows


def experts_words(program: Program, limits: StageLimits) -> dict[str, int]:
    """Return the words of scratch memory that the largest mixture of a program needs, by name."""
    mixtures = [slotted.op for slotted in program.ops if isinstance(slotted.op, Experts)]
    sizes = [_words(op, limits.max_rows) for op in mixtures]
    return {name: max(one[name] for one in sizes) for name in (sizes[0] if sizes else ())}


def _words(op: Experts, rows: int) -> dict[str, int]:
    assigned, (_, width, inner) = rows * op.top_k, op.down.view_shape
    return {
        GROUPS: _GROUP_WORDS * assigned,
        ASSIGNED: 1,
        ROW_NUMBERS: assigned,
        PLACES: rows * op.num_experts,
        GATES: 0 if op.gate is None else assigned * stride_of(inner),
        UPS: assigned * stride_of(inner),
        OUTPUTS: assigned * stride_of(width),
    }


def _tile(matrix: DeviceMatrix, per_expert: int, group_rows: int) -> Tile:
    """Return the tile of a matrix with as many rows of x as a group has."""
    fastest = tile_of(matrix, per_expert)
    return fastest if fastest.all_cols == group_rows else default_tile(group_rows, matrix.height)


def _products(
    context: Context, op: Experts, matrix: DeviceMatrix, bias: int | None, target: Target, tile: Tile
) -> Iterator[Dispatch]:
    rows = context.rows * op.top_k
    return products(context.work, matrix, context.vector(bias), target, tile, rows)


def _assign(context: Context, slotted: SlottedOp, num_groups: int, group_rows: int) -> Dispatch:
    op, routes = slotted.op, slotted.inputs[1]
    assert isinstance(op, Experts)
    constants = (
        context.counts, context.slots[routes], context.stride(routes), op.num_experts, context.scratch[GROUPS],
        num_groups, group_rows, *(context.scratch[name] for name in (ASSIGNED, ROW_NUMBERS, PLACES)),
    )  # fmt: skip
    return Dispatch(Shader("experts_assign"), (context.work,), constants, (1, 1, 1))


def _activate(context: Context, op: Experts) -> Dispatch:
    inner, up = op.down.view_shape[2], context.scratch[UPS]
    limit = _NO_LIMIT if op.limit is None else op.limit
    constants = (
        context.scratch[ASSIGNED], context.scratch[GATES], up, up, stride_of(inner), inner,
        float_word(limit), float_word(op.offset),
    )  # fmt: skip
    shader = Shader("experts_gate", (int(op.gate is not None), ACTIVATIONS.index(op.activation)))
    groups = (-(-stride_of(inner) // _ELEMENTS), context.rows, op.top_k)
    return Dispatch(shader, (context.work,), constants, groups)


def _sum(context: Context, slotted: SlottedOp) -> Dispatch:
    op, routes, out = slotted.op, slotted.inputs[1], slotted.outputs[0]
    assert isinstance(op, Experts)
    width = op.down.view_shape[1]
    constants = (
        context.counts, context.slots[routes], context.stride(routes), op.num_experts, context.scratch[PLACES],
        context.scratch[OUTPUTS], stride_of(width), context.slots[out], context.stride(out), width,
    )  # fmt: skip
    groups = (-(-width // _ELEMENTS), context.rows, 1)
    return Dispatch(Shader("experts_sum"), (context.work,), constants, groups)
