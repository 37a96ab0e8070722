"""The interface of kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from llmd.api import Selection, Step, WeightData
from llmd.api.step import Float32, Int32
from llmd_backend_example.kv import KVPool


@dataclass(frozen=True)
class Batch:
    """The rows of one step: ``tokens`` int32 ``[rows]``, and the pool of each KV group."""

    step: Step
    tokens: Int32
    pools: Mapping[int, KVPool]
    selection: Selection | None


class Kernel(Protocol):
    """One op with its weights."""

    def run(self, batch: Batch, inputs: Sequence[Float32]) -> Sequence[Float32]:
        """Take inputs ``[rows, width]`` in the order of ``op.reads``; return outputs in the order of
        ``op.writes``.
        """
        ...


def to_float32(weight: WeightData) -> Float32:
    """Return a copy of a plain weight in float32: its file is unmapped after loading."""
    if weight.format == "bf16":  # NumPy has no bf16, which is the upper half of a float32
        return (weight.data.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return weight.data.astype(np.float32)
