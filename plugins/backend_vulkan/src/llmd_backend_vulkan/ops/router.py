"""The weight of each expert for each row: logits of all experts, then the choice among them."""

from __future__ import annotations

from llmd.api import Program, StageLimits
from llmd.api.encoding import SCORES
from llmd.api.expert_ops import Router
from llmd.api.program import SlottedOp
from llmd_backend_vulkan.commands import Dispatch, Shader
from llmd_backend_vulkan.context import NONE, Context, float_word, stride_of
from llmd_backend_vulkan.ops.linear import Target, products, tile_of

MAX_EXPERTS = 1024
"""Most experts of a layer: what shaders keep in shared memory."""

LOGITS = "router logits"
"""Float32 ``[max_rows][stride]`` in the scratch memory."""


def router(context: Context, slotted: SlottedOp) -> list[list[Dispatch]]:
    """Return the phases of a router."""
    op = slotted.op
    assert isinstance(op, Router)
    x, out = slotted.inputs[0], slotted.outputs[0]
    weight, bias, correction, gains = slotted.weights
    matrix, logits, stride = context.matrix(weight), context.scratch[LOGITS], stride_of(_experts(op))
    target = Target(context.slots[x], context.stride(x), logits, stride, context.counts, scale=op.scale)
    tile = tile_of(matrix, context.rows)
    multiply = products(context.work, matrix, context.vector(bias), target, tile, context.rows)
    (corrections, correction_at), (gain, gain_at) = context.vector(correction), context.vector(gains)
    options = (
        SCORES.index(op.score), op.normalized, op.group_score == "sum_of_two", correction is not None,
        gains is not None, op.given is not None,
    )  # fmt: skip
    constants = (
        context.counts, logits, stride, context.slots[out], context.stride(out), _experts(op), op.top_k,
        op.groups, op.top_groups, correction_at, gain_at, *_given(context, slotted), float_word(op.factor),
    )  # fmt: skip
    shader = Shader("router", tuple(map(int, options)))
    choose = Dispatch(shader, (context.work, corrections, gain), constants, (context.rows, 1, 1))
    return [list(multiply), [choose]]


def router_words(program: Program, limits: StageLimits) -> dict[str, int]:
    """Return the words of scratch memory that the largest router of a program needs, by name."""
    ops = (slotted.op for slotted in program.ops)
    widths = [stride_of(_experts(op)) for op in ops if isinstance(op, Router)]
    return {LOGITS: limits.max_rows * max(widths, default=0)}


def _given(context: Context, slotted: SlottedOp) -> tuple[int, int]:
    """Return where the numbers of the experts of each row are, and their stride; `NONE` if scores decide."""
    if len(slotted.inputs) == 1:
        return NONE, 0
    slot = slotted.inputs[1]
    return context.slots[slot], context.stride(slot)


def _experts(op: Router) -> int:
    return op.weight.view_shape[0]
