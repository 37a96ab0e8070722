"""Compute the tensors of a converted model from those of its source."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from llmd.api.errors import CheckpointError
from llmd.api.tensors import PLAIN_FORMATS, Format
from llmd.conversion.tensor_map import MappedTensor
from llmd.models.checkpoint import Checkpoint
from llmd.models.formats.gguf_quantization import quantize_to_blocks
from llmd.models.plain_formats import convert, from_float32, to_float32
from llmd.models.weight_source import plain_numbers


class TensorReader:
    """Reads tensors under the names and in the formats of the target. Keeps no data between calls."""

    def __init__(
        self, checkpoint: Checkpoint, tensor_map: Mapping[str, MappedTensor], formats: Mapping[str, Format]
    ) -> None:
        self._checkpoint = checkpoint
        self._tensor_map = tensor_map
        self._formats = formats

    def __call__(self, name: str) -> NDArray[np.generic]:
        """Return the elements of a tensor, or the bytes of its blocks.

        Raises:
            CheckpointError: a value does not fit the format, or the file has shrunk.
        """
        move, target = self._tensor_map[name], self._formats[name]
        try:
            content = self._read(move, target)
        except ArithmeticError as error:
            raise CheckpointError(
                f"cannot be written as {target}: {error}",
                file=str(self._checkpoint.file),
                tensor=move.ref.name,
                hint="choose another format with --quant: bf16 and f32 have the widest range",
            ) from error
        return content if move.reorder is None else content[move.reorder.order()]

    def fits(self, name: str, target: Format) -> bool:
        """Whether a tensor can be stored exactly in this plain format."""
        move = self._tensor_map[name]
        values = to_float32(self._read(move, "f32"), "f32")
        return bool(np.array_equal(to_float32(from_float32(values, target), target), values))

    def _read(self, move: MappedTensor, target: Format) -> NDArray[np.generic]:
        tensor, content = self._checkpoint.tensors[move.ref.name], self._checkpoint.view(move.ref.name)
        assert tensor.format is not None, "check_plan refuses other dtypes"
        if move.shift:
            values = plain_numbers("f32", content, tensor).astype(np.float32, copy=False)
            return convert(values + np.float32(move.shift), "f32", target)
        if target == tensor.format:
            return content
        if target in PLAIN_FORMATS:
            return plain_numbers(target, content, tensor)
        return quantize_to_blocks(content, tensor.format, target)
