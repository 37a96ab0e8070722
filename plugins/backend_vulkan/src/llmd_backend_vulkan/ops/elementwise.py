"""Ops whose elements do not depend on each other: add, glu, activate, gate and multiply."""

from __future__ import annotations

from llmd.api.activations import ACTIVATIONS, Activation
from llmd.api.ops import Activate, Add, Gate, Glu, Multiply
from llmd.api.program import SlottedOp
from llmd_backend_vulkan.commands import Dispatch, Shader
from llmd_backend_vulkan.context import Context, float_word

_ADD, _GLU, _ACTIVATE, _GATE, _MULTIPLY = range(5)
_ELEMENTS = 256
"""Elements of a work group."""


def add(context: Context, slotted: SlottedOp) -> Dispatch:
    """Return the dispatch of an add."""
    assert isinstance(slotted.op, Add)
    return _dispatch(context, slotted, _plain(_ADD), slotted.op.scale)


def glu(context: Context, slotted: SlottedOp) -> Dispatch:
    """Return the dispatch of a glu."""
    assert isinstance(slotted.op, Glu)
    limit = slotted.op.limit
    shader = _activating(_GLU, slotted.op.activation, is_limited=limit is not None)
    return _dispatch(context, slotted, shader, 1.0, slotted.op.threshold, limit or 0.0)


def activate(context: Context, slotted: SlottedOp) -> Dispatch:
    """Return the dispatch of an activation."""
    assert isinstance(slotted.op, Activate)
    return _dispatch(context, slotted, _activating(_ACTIVATE, slotted.op.activation))


def gate(context: Context, slotted: SlottedOp) -> Dispatch:
    """Return the dispatch of a gate."""
    assert isinstance(slotted.op, Gate)
    return _dispatch(context, slotted, _plain(_GATE))


def multiply(context: Context, slotted: SlottedOp) -> Dispatch:
    """Return the dispatch of a multiply."""
    assert isinstance(slotted.op, Multiply)
    return _dispatch(context, slotted, _plain(_MULTIPLY))


def _plain(kind: int) -> Shader:
    return Shader("elementwise", (kind, 0, 0))


def _activating(kind: int, activation: Activation, *, is_limited: bool = False) -> Shader:
    return Shader("elementwise", (kind, ACTIVATIONS.index(activation), int(is_limited)))


def _dispatch(
    context: Context,
    slotted: SlottedOp,
    shader: Shader,
    scale: float = 1.0,
    threshold: float = 0.0,
    limit: float = 0.0,
) -> Dispatch:
    a, b, out = slotted.inputs[0], slotted.inputs[-1], slotted.outputs[0]
    width = context.program.slot_widths[out]
    factors, factor_at = context.vector(next(iter(slotted.weights), None))
    constants = (
        context.counts, context.slots[a], context.slots[b], context.slots[out], context.stride(out), width,
        context.stride(b), width // context.program.slot_widths[b], factor_at, float_word(scale),
        float_word(threshold), float_word(limit),
    )  # fmt: skip
    return Dispatch(shader, (context.work, factors), constants, (-(-width // _ELEMENTS), context.rows, 1))
