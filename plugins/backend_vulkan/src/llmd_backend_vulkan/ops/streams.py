"""Hyper-connections: the weights of streams, and their mixtures."""

from __future__ import annotations

from llmd.api import CollapseStreams, MixStreams, Program, SlottedOp, StageLimits, StreamWeights
from llmd_backend_vulkan.commands import Dispatch, Shader
from llmd_backend_vulkan.context import Context, float_word, stride_of
from llmd_backend_vulkan.ops.linear import Target, products, tile_of

MAX_STREAMS = 8
"""Most streams: a work group of 64 threads has the matrix that mixes them."""

PRODUCTS = "products of streams"
"""Float32 ``[max_rows][stride]`` in the scratch memory."""

_ELEMENTS = 256
"""Elements of a work group."""


def stream_weights(context: Context, slotted: SlottedOp) -> list[list[Dispatch]]:
    """Return the phases of the weights of streams: multiply, then weigh."""
    op = slotted.op
    assert isinstance(op, StreamWeights)
    x, out = slotted.inputs[0], slotted.outputs[0]
    weight, bias, scale = slotted.weights
    matrix, place, stride = context.matrix(weight), context.scratch[PRODUCTS], context.stride(out)
    target = Target(context.slots[x], context.stride(x), place, stride, context.counts)
    tile = tile_of(matrix, context.rows)
    multiply = products(context.work, matrix, context.vector(None), target, tile, context.rows)
    (biases, bias_at), (scales, scale_at) = context.vector(bias), context.vector(scale)
    constants = (
        context.counts, context.slots[x], context.stride(x), context.program.slot_widths[x], place, stride,
        context.slots[out], context.stride(out), bias_at, scale_at, op.streams, op.rounds, float_word(op.eps),
        float_word(op.floor),
    )  # fmt: skip
    buffers, groups = (context.work, biases, scales), (context.rows, 1, 1)
    return [list(multiply), [Dispatch(Shader("stream_weights"), buffers, constants, groups)]]


def collapse_streams(context: Context, slotted: SlottedOp) -> Dispatch:
    """Return the dispatch that makes one row of the streams."""
    op = slotted.op
    assert isinstance(op, CollapseStreams)
    (x, weights), out = slotted.inputs, slotted.outputs[0]
    width = context.program.slot_widths[out]
    constants = (
        context.counts, context.slots[x], context.stride(x), context.slots[weights], context.stride(weights),
        context.slots[out], context.stride(out), width, op.streams,
    )  # fmt: skip
    groups = (-(-width // _ELEMENTS), context.rows, 1)
    return Dispatch(Shader("collapse_streams"), (context.work,), constants, groups)


def mix_streams(context: Context, slotted: SlottedOp) -> Dispatch:
    """Return the dispatch that mixes streams and adds the output of a layer."""
    op = slotted.op
    assert isinstance(op, MixStreams)
    (x, y, weights), out = slotted.inputs, slotted.outputs[0]
    width = context.program.slot_widths[y]
    constants = (
        context.counts, context.slots[x], context.stride(x), context.slots[y], context.stride(y),
        context.slots[weights], context.stride(weights), context.slots[out], width, op.streams,
    )  # fmt: skip
    groups = (-(-op.streams * width // _ELEMENTS), context.rows, 1)
    return Dispatch(Shader("mix_streams"), (context.work,), constants, groups)


def streams_words(program: Program, limits: StageLimits) -> dict[str, int]:
    """Return the words of scratch memory that the weights of streams of a program need, by name."""
    outs = [slotted.outputs[0] for slotted in program.ops if isinstance(slotted.op, StreamWeights)]
    widths = [stride_of(program.slot_widths[out]) for out in outs]
    return {PRODUCTS: limits.max_rows * max(widths, default=0)}
