"""Weights for tests: drawn from the tensor's name, so that every process and every split sees the same."""

from __future__ import annotations

import zlib

import numpy as np

from llmd.api import INTEGER_FORMATS, Format, TensorRef, Weight, WeightData
from llmd.models.plain_formats import from_float32
from llmd.testing.integer_weights import random_integers


class RandomSource:
    """A `TensorSource` of normal weights, in integer formats of uniform codes.

    Vectors lie around 1, matrices have a spread of ``2 * in ** -0.5``.
    """

    packed = None

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def read(self, weight: Weight) -> WeightData:
        return self._draw(weight.ref, weight.format).rows(slice(*(weight.ref.rows or (None,))))

    def _draw(self, ref: TensorRef, name: Format) -> WeightData:
        draw = np.random.default_rng([self._seed, zlib.crc32(ref.name.encode())])
        if name in INTEGER_FORMATS:
            return random_integers(name, ref.shape, 2.0 * ref.shape[-1] ** -0.5, draw)
        normal = draw.standard_normal(ref.shape)
        values = 1.0 + 0.25 * normal if len(ref.shape) == 1 else 2.0 * normal * ref.shape[-1] ** -0.5
        return WeightData(name, from_float32(values.astype(np.float32), name))
