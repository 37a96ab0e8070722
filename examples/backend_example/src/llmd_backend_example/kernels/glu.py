"""``out = activation(gate) * up``: the middle of a feed-forward network."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from llmd.api import Glu, Program, SlottedOp, WeightData
from llmd.api.step import Float32
from llmd_backend_example.kernels.kernel import Batch

_erf = np.vectorize(math.erf, otypes=[np.float32])  # NumPy has no erf

ACTIVATIONS: Mapping[str, Callable[[Float32], Float32]] = {
    "silu": lambda x: x * np.float32(0.5) * (1 + np.tanh(x / 2)),
    "gelu": lambda x: x * np.float32(0.5) * (1 + _erf(x / np.float32(math.sqrt(2)))),
    "gelu_tanh": lambda x: (
        x
        * np.float32(0.5)
        * (1 + np.tanh(np.float32(math.sqrt(2 / math.pi)) * (x + np.float32(0.044715) * x**3)))
    ),
    "relu": lambda x: np.maximum(x, 0),
    "relu2": lambda x: np.square(np.maximum(x, 0)),
    "tanh": np.tanh,
    "sigmoid": lambda x: np.float32(0.5) * (1 + np.tanh(x / 2)),
    "identity": lambda x: x,
    "quick_gelu": lambda x: x * np.float32(0.5) * (1 + np.tanh(np.float32(0.851) * x)),
}


def load_glu(slotted: SlottedOp, _weights: Sequence[WeightData | None], _program: Program) -> GluKernel:
    assert isinstance(slotted.op, Glu)
    return GluKernel(slotted.op)


class GluKernel:
    def __init__(self, op: Glu) -> None:
        self._activate = ACTIVATIONS[op.activation]
        self._threshold = np.float32(op.threshold)

    def run(self, _batch: Batch, inputs: Sequence[Float32]) -> Sequence[Float32]:
        gate, up = inputs
        if self._threshold > 0:
            gate = np.where(gate < self._threshold, np.float32(0), gate)
        return [self._activate(gate) * up]
