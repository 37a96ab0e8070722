"""The state space of Mamba-2, with a state for each sequence."""

from __future__ import annotations

from llmd.api.program import SlottedOp
from llmd.api.state_ops import StateSpace
from llmd_backend_vulkan.commands import Dispatch, Shader
from llmd_backend_vulkan.context import Context
from llmd_backend_vulkan.ops.states import StateLayer, convolve, run, weigh

_NO_BOUND = 3.4028234663852886e38
"""The largest float32: Vulkan lets compilers assume that no number is infinite."""


def state_space(context: Context, slotted: SlottedOp) -> list[list[Dispatch]]:
    """Return the phases of the op: convolve rows, then change states by them."""
    op = slotted.op
    assert isinstance(op, StateSpace)
    taps, (rates, bias, skips), filter_biases = (slotted.weights[at : at + 3] for at in (0, 3, 6))
    time = slotted.inputs[3]
    layer = StateLayer.of(context, slotted, op.heads)
    shader = Shader("state_weigh", (1, int(op.rates_as == "log")))
    bounds = (op.least_time, _NO_BOUND if op.most_time is None else op.most_time)
    prepare = [
        *convolve(layer, taps, filter_biases, (0.0,) * 3),
        weigh(layer, shader, (time, time), (rates, bias), bounds),
    ]
    return [prepare, run(layer, context.vector(skips), is_space=True, is_tiled=False)]
