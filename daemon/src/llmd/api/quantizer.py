"""Quantisation of plain weights by a device that is faster than NumPy, while a model loads."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from llmd.api.tensors import Format, WeightData


class Quantizer(Protocol):
    """Bit-identical to ``llmd.models.formats.quantization``, which defines each step. Thread-safe."""

    def quantize(self, weights: NDArray[np.generic], source: Format, into: WeightData) -> bool:
        """Quantise rows of a matrix to ``into.format``, one of `OWN_FORMATS`; return whether that succeeded.

        ``weights`` is ``[rows, in]`` of the plain format ``source`` (see `WeightData`). It may have any
        alignment and may not be contiguous. The result goes to the arrays of ``into``, which are C-contiguous
        and have the shapes for these rows. Return False if weights are infinite, NaN or out of the format's
        range, or if anything else fails: the core then quantises these rows itself, or reports what is wrong
        with them.
        """
        ...


@runtime_checkable
class Quantizes(Protocol):
    """A device that can quantise the weights that it loads."""

    @property
    def quantizer(self) -> Quantizer:
        """The quantizer of the device; several threads use it at once."""
        ...
