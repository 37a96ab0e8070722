"""Linear attention with the gated delta rule, with a state for each sequence."""

from __future__ import annotations

from llmd.api.program import SlottedOp
from llmd.api.state_ops import GatedDelta
from llmd_backend_vulkan.commands import Dispatch, Shader
from llmd_backend_vulkan.context import Context
from llmd_backend_vulkan.ops.states import StateLayer, convolve, run, weigh


def gated_delta(context: Context, slotted: SlottedOp) -> list[list[Dispatch]]:
    """Return the phases of the op: convolve rows, then change states by them."""
    op = slotted.op
    assert isinstance(op, GatedDelta)
    *taps, rates, bias = slotted.weights
    decay, beta = slotted.inputs[3:]
    layer = StateLayer.of(context, slotted, op.bias.view_shape[-1])
    shader = Shader("state_weigh", (0, int(op.rates_as == "log")))
    lengths = (op.key_dim**-0.5, 1.0, 0.0)  # of queries and keys; values keep theirs
    prepare = [
        *convolve(layer, taps, (None,) * 3, lengths),
        weigh(layer, shader, (decay, beta), (rates, bias)),
    ]
    return [prepare, run(layer, context.vector(None), is_space=False, is_tiled=op.tiled)]
