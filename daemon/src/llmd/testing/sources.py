"""Random weights for tests, seeded by the tensor's name: every process and every split sees the same."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api import INTEGER_FORMATS, SCALED_FORMATS, Format, TensorRef, Weight, WeightData
from llmd.api.quantizer import Quantizer
from llmd.models.formats.gguf_blocks import BLOCK_FORMATS, decode
from llmd.models.plain_formats import from_float32
from llmd.models.source_recipe import SourceRecipe
from llmd.testing.integer_weights import random_blocks, random_integers
from llmd.testing.scaled_weights import random_floats

NEGATIVE = ".negative"
"""End of the names of vectors that are around -1, such as rates that are stored negative."""


class RandomSource:
    """A `TensorSource` of random weights: normal values, uniform codes in integer and
    scaled formats, any blocks for GGUF.

    Vectors are around 1, those whose name ends with `NEGATIVE` around -1; matrices have a standard deviation
    of ``2 * in ** -0.5``.
    """

    packed = None

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    @property
    def recipe(self) -> SourceRecipe:
        """How another process makes the same weights (`HasRecipe`)."""
        return SourceRecipe(f"{__name__}:{random_source.__name__}", (str(self._seed),))

    def reading_ahead(self, weights: Sequence[Weight]) -> AbstractContextManager[Sequence[int]]:
        return nullcontext(range(len(weights)))

    def stored_blocks(self, weight: Weight) -> NDArray[np.uint8] | None:
        if weight.format not in BLOCK_FORMATS:
            return None
        return self._draw_blocks(weight.ref, weight.format)[_rows(weight.ref)]

    def read(self, weight: Weight) -> WeightData:
        ref, name = weight.ref, weight.format
        if name in BLOCK_FORMATS:
            return decode(name, self._draw_blocks(ref, name), ref.view_shape[-1]).rows(_rows(ref))
        draw = self._generator(ref)
        if ref.integers_below is not None:
            numbers = draw.integers(0, ref.integers_below, ref.shape).astype(np.float32)
            return WeightData(name, np.ascontiguousarray(ref.part_of(numbers)))
        if name in INTEGER_FORMATS:
            return random_integers(name, _whole_shape(ref), _spread(ref), draw).rows(_rows(ref))
        if name in SCALED_FORMATS:
            return random_floats(name, _whole_shape(ref), _spread(ref), draw).rows(_rows(ref))
        normal = draw.standard_normal(ref.shape)
        values = normal * _spread(ref) if ref.is_matrix else _sign(ref) + 0.25 * normal
        whole = from_float32(values.astype(np.float32), name)
        return WeightData(name, np.ascontiguousarray(ref.part_of(whole)))

    def _draw_blocks(self, ref: TensorRef, name: Format) -> NDArray[np.uint8]:
        return random_blocks(name, *_whole_shape(ref), _spread(ref), self._generator(ref))

    def _generator(self, ref: TensorRef) -> np.random.Generator:
        return np.random.default_rng([self._seed, zlib.crc32(ref.name.encode())])


def random_source(seed: str, _quantizer: Quantizer | None) -> RandomSource:
    """Return the source of a seed: see `SourceRecipe`."""
    return RandomSource(int(seed))


def _spread(ref: TensorRef) -> float:
    return float(2.0 * ref.whole_shape[-1] ** -0.5)


def _sign(ref: TensorRef) -> float:
    return -1.0 if ref.name.endswith(NEGATIVE) else 1.0


def _whole_shape(ref: TensorRef) -> tuple[int, int]:
    """Return the shape of a whole matrix, or of the matrices of a stack one below the other."""
    return math.prod(ref.whole_shape[:-1]), ref.view_shape[-1]


def _rows(ref: TensorRef) -> NDArray[np.intp]:
    """Return the rows of the whole that the reference means."""
    numbers = np.arange(_whole_shape(ref)[0]).reshape(*ref.whole_shape[:-1], 1)
    upright = msgspec.structs.replace(ref, is_transposed=False, columns=None)
    return upright.part_of(numbers)[:, 0].astype(np.intp)
