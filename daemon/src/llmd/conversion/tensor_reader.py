"""Compute the tensors of a converted model from those of its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.errors import CheckpointError
from llmd.api.tensors import PLAIN_FORMATS, SCALED_FORMATS, Format, TensorRef, Weight
from llmd.conversion.tensor_map import MappedPart, MappedTensor
from llmd.models.checkpoint import Checkpoint, TensorInfo
from llmd.models.formats.gguf_quantization import quantize_to_blocks
from llmd.models.new_weights import INTEGERS
from llmd.models.plain_formats import Float32, from_float32, to_float32
from llmd.models.split_formats import CODES, SCALES, split_blocks
from llmd.models.weight_source import CheckpointSource, plain_numbers

Array = NDArray[np.generic]


class TensorReader:
    """Reads tensors under the names and in the formats of the target. Keeps no data between calls."""

    def __init__(
        self, checkpoint: Checkpoint, tensor_map: Mapping[str, MappedTensor], formats: Mapping[str, Format]
    ) -> None:
        self._checkpoint = checkpoint
        self._source = CheckpointSource(checkpoint)
        self._tensor_map = tensor_map
        self._formats = formats

    def __call__(self, name: str) -> Iterator[Array]:
        """Yield the elements of a tensor, or the bytes of its blocks; of a stack, one member at a time.

        The name of a tensor of codes or of scales of blocks ends in `CODES` or `SCALES`.

        Raises:
            CheckpointError: a value does not fit the format, an integer is out of range, or the file has
                shrunk.
        """
        piece = next((end for end in (CODES, SCALES) if name.endswith(end)), "")
        whole = name.removesuffix(piece)
        for tensor in _pieces(self._tensor_map[whole]):
            content = self._content(tensor, self._formats[whole])
            yield split_blocks(content.view(np.uint8))[piece == SCALES] if piece else content

    def fits(self, name: str, target: Format) -> bool:
        """Whether a tensor can be stored in this plain format without losing anything."""
        tensors = _pieces(self._tensor_map[name])
        return all(self._part_fits(part, target) for tensor in tensors for part in tensor.parts)

    def _part_fits(self, part: MappedPart, target: Format) -> bool:
        values = to_float32(self._part(part, "f32"), "f32")
        with np.errstate(over="ignore"):
            rounded = to_float32(from_float32(values, target), target)
        if part.rates != "log":
            return bool(np.array_equal(rounded, values))
        # The logarithm of a rate is rounded; the number that it was made from gives the same rate again.
        stored = self._part(msgspec.structs.replace(part, rates=None), "f32")
        return bool(np.array_equal(_negative(rounded), stored))

    def _content(self, tensor: MappedTensor, target: Format) -> Array:
        """Return a tensor that is no stack."""
        if target in INTEGERS:
            return self._source.integers(tensor.parts[0].source).astype(INTEGERS[target], copy=False)
        contents = [self._read(part, target) for part in tensor.parts]
        if len(contents) == 1 and not tensor.ref.is_transposed:
            return contents[0]
        whole_shape = (*tensor.ref.whole_shape[:-1], contents[0].shape[-1])
        whole = np.empty(whole_shape if tensor.ref.is_matrix else tensor.ref.shape, contents[0].dtype)
        for part, content in zip(tensor.parts, contents, strict=True):
            whole[_row_numbers(part.target)] = content
        return whole.swapaxes(-1, -2) if tensor.ref.is_transposed else whole

    def _read(self, part: MappedPart, target: Format) -> Array:
        try:
            return self._part(part, target)
        except ArithmeticError as error:
            raise CheckpointError(
                f"cannot be written as {target}: {error}",
                file=str(self._checkpoint.file),
                tensor=part.source.name,
                hint="choose another format with --quant: bf16 and f32 have the widest range",
            ) from error

    def _part(self, part: MappedPart, target: Format) -> Array:
        """Return a part of a tensor in the format and order of the target."""
        tensor, content = self._stored(part.source)
        stored = tensor.format
        assert stored is not None, "check_plan refuses other dtypes"
        is_plain = stored in PLAIN_FORMATS
        if part.columns is not None and is_plain:
            content = content[:, part.columns.order()]
        if part.shift or part.rates or part.factor != 1.0:
            values = plain_numbers("f32", content, tensor).astype(np.float32, copy=False)
            content, stored = _changed(values, part), "f32"
            tensor = msgspec.structs.replace(tensor, dtype="F32")
        if target in PLAIN_FORMATS:
            content = plain_numbers(target, content, tensor)
        elif target != stored:
            content = quantize_to_blocks(content, stored, target)
        if part.columns is not None and not is_plain:
            content = content[:, part.columns.order()]
        ordered = content if part.rows is None else content[part.rows.order()]
        return ordered if part.target.is_matrix else ordered.reshape(part.target.view_shape)

    def _stored(self, ref: TensorRef) -> tuple[TensorInfo, Array]:
        """Return a part as the checkpoint has it; as float32 if its format is scaled, or its blocks lie
        along the other axis.
        """
        tensor = self._checkpoint.tensors[ref.name]
        is_turned = ref.is_transposed and tensor.format not in PLAIN_FORMATS
        if tensor.format not in SCALED_FORMATS and not is_turned:
            return tensor, self._source.view(ref)
        return msgspec.structs.replace(tensor, dtype="F32"), self._source.read(Weight(ref, "f32")).data


def _pieces(tensor: MappedTensor) -> Iterator[MappedTensor]:
    """Yield the tensors that are read one at a time: the members of a stack, or the tensor itself."""
    if tensor.ref.is_stack:
        yield from tensor.members
    else:
        yield tensor


def _row_numbers(ref: TensorRef) -> NDArray[np.intp]:
    """Return the rows of the whole tensor that a reference means."""
    rows = np.arange(ref.whole_shape[0])
    return (
        rows
        if ref.rows is None
        else rows.reshape(-1, ref.period or len(rows))[:, slice(*ref.rows)].reshape(-1)
    )


def _changed(values: Float32, part: MappedPart) -> Float32:
    if part.rates == "negative":
        return _negative(values)
    if part.rates == "log":
        if not (values < 0).all():
            raise ArithmeticError(f"the rate {values.max()} should be negative")
        return np.log(-values.astype(np.float64)).astype(np.float32)
    return values * np.float32(part.factor) + np.float32(part.shift)


def _negative(logs: Float32) -> Float32:
    """Return negative rates. Source: ``conversion/qwen.py`` of github.com/ggml-org/llama.cpp."""
    rates: Float32 = -np.exp(logs)
    return rates
