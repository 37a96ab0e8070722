"""What quantises plain weights while a model loads, where a device has something faster than NumPy."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from llmd.api.tensors import Format, WeightData


class Quantizer(Protocol):
    """`llmd.models.formats.quantization`, which defines every step, to the same bits. Thread-safe."""

    def quantize(self, weights: NDArray[np.generic], source: Format, into: WeightData) -> bool:
        """Quantise some rows of a matrix to ``into.format``, one of `OWN_FORMATS`, and return whether that was done.

        ``weights`` is ``[rows, in]`` of the plain format ``source``, as `WeightData` has it: maybe of any alignment, and
        maybe not contiguous. The arrays of ``into`` are C-contiguous, have the shapes for these rows, and are filled.
        False where weights are infinite, not a number or beyond the range of the format, or anything else is in the way:
        the core then quantises these rows by itself, or says what is wrong with them.
        """
        ...


@runtime_checkable
class Quantizes(Protocol):
    """A device that quantises the weights that it loads."""

    @property
    def quantizer(self) -> Quantizer:
        """What quantises; any number of threads use it at once."""
        ...
