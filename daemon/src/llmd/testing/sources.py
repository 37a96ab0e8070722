"""Weights for tests: drawn from the tensor's name, so that every process and every split sees the same."""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

from llmd.api import Format, TensorRef, Weight, WeightData
from llmd.models.plain_formats import from_float32
from llmd.models.quantization import quantize_q8


class RandomSource:
    """A `TensorSource` of normal weights. Vectors lie around 1, matrices have a spread of ``in ** -0.5``."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def read(self, weight: Weight) -> WeightData:
        whole = self._draw(weight.ref)
        first, last = weight.ref.rows or (0, len(whole))
        return _convert(whole[first:last], weight.format)

    def _draw(self, ref: TensorRef) -> NDArray[np.float32]:
        generator = np.random.default_rng([self._seed, zlib.crc32(ref.name.encode())])
        normal = generator.standard_normal(ref.shape)
        values = 1.0 + 0.25 * normal if len(ref.shape) == 1 else 2.0 * normal * ref.shape[-1] ** -0.5
        drawn: NDArray[np.float32] = values.astype(np.float32)
        return drawn


def _convert(values: NDArray[np.float32], name: Format) -> WeightData:
    if name == "q8":
        return quantize_q8(values)
    return WeightData(name, from_float32(values, name))
