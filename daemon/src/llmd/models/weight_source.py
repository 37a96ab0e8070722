"""Weights of a checkpoint in the format that a program asks for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llmd.api.errors import CheckpointError
from llmd.api.tensors import PLAIN_FORMATS, Format, Weight, WeightData
from llmd.models.checkpoint import Checkpoint
from llmd.models.plain_formats import convert
from llmd.models.plan_check import find_tensor
from llmd.models.quantization import QUANT_FORMATS, quantize_q8


class CheckpointSource:
    """`TensorSource` of an open checkpoint. Thread-safe; keeps nothing between calls."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint

    def read(self, weight: Weight) -> WeightData:
        """The weight: mapped where its stored format is asked for and aligned, else converted or quantised.

        Raises:
            CheckpointError: the tensor is missing or contradicts ``weight.ref``, its file has shrunk, or its
                values do not fit the format.
        """
        tensor = find_tensor(weight.ref, self._checkpoint)
        assert tensor.format is not None
        data = self._checkpoint.view(tensor.name)
        if weight.ref.rows is not None:
            data = data[slice(*weight.ref.rows)]
        try:
            read = _in_format(data, tensor.format, weight.format)
        except ArithmeticError as error:
            raise CheckpointError(
                f"cannot be stored as {weight.format}: {error}",
                file=str(tensor.file),
                tensor=tensor.name,
                hint="the weights may be damaged; copy them again, or load them as they are stored",
            ) from error
        for array in read.arrays:
            array.flags.writeable = False
        return read


def _in_format(data: NDArray[np.generic], stored: Format, wanted: Format) -> WeightData:
    if wanted in PLAIN_FORMATS:
        # A header of odd length leaves its data unaligned; only then a stored format costs a copy.
        return WeightData(wanted, np.require(convert(data, stored, wanted), requirements="A"))
    assert wanted in QUANT_FORMATS, wanted
    return quantize_q8(data, stored)
