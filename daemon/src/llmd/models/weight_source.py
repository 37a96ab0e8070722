"""Provide the weights of a checkpoint in the format that a program asks for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.errors import CheckpointError
from llmd.api.quantizer import Quantizer
from llmd.api.tensors import PLAIN_FORMATS, SCALED_FORMATS, Format, GroupScales, TensorRef, Weight, WeightData
from llmd.models.checkpoint import Checkpoint, TensorInfo
from llmd.models.formats.dequantization import dequantize
from llmd.models.formats.fp8 import NO_EXPONENT, check_numbers
from llmd.models.formats.gguf_blocks import BLOCK_FORMATS, decode
from llmd.models.formats.quantization import quantize
from llmd.models.formats.row_chunks import for_row_chunks
from llmd.models.nvfp4_tensors import NVFP4, read_nvfp4
from llmd.models.plain_formats import STORED_DTYPES, Float32, convert
from llmd.models.plan_check import find_tensor
from llmd.models.read_ahead import ReadAhead
from llmd.models.scaled_tensors import row_scales
from llmd.models.source_recipe import SourceRecipe
from llmd.models.split_formats import mxfp4_blocks

SMALL_BYTES = 1 << 18
"""Tensors up to this many bytes are read explicitly. A page fault reads megabytes around the page, and the
vectors of a model are scattered among its matrices: reading 33 vectors of 8 KB through the map took 0.2 s."""


class CheckpointSource:
    """The `TensorSource` of an open checkpoint. Thread-safe; does not keep what it read."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        packed: Path | None = None,
        quantizer: Quantizer | None = None,
        directory: Path | None = None,
        adapters: Mapping[str, str] | None = None,
    ) -> None:
        """``directory`` is the model's; without it, the source has no `recipe`. ``adapters`` has the
        directories of adapters that the checkpoint has, by name.
        """
        self._adapters = adapters or {}
        self._directory = directory
        self._checkpoint = checkpoint
        self._quantizer = quantizer
        self.packed = packed
        self._ahead: ReadAhead | None = None

    @property
    def recipe(self) -> SourceRecipe:
        """How another process gets the same weights (`HasRecipe`)."""
        assert self._directory is not None
        packed = str(self.packed) if self.packed else ""
        adapters = json.dumps(dict(self._adapters))
        return SourceRecipe(
            f"{__name__}:{open_source.__name__}", (str(self._directory.resolve()), packed, adapters)
        )

    def close(self) -> None:
        """Close the checkpoint, and with it what was read. For sources that `open_source` made."""
        self._checkpoint.close()

    def release(self) -> None:
        """Drop the mapped pages of the files from this process; what was read stays valid."""
        self._checkpoint.release()

    @contextmanager
    def reading_ahead(self, weights: Sequence[Weight]) -> Iterator[Sequence[int]]:
        """See `TensorSource.reading_ahead`."""
        stored = [self._stored(weight.ref) for weight in weights]
        order = sorted(range(len(stored)), key=lambda place: (stored[place][0].file, stored[place][0].begin))
        sizes = ((tensor.name, tensor.size_bytes) for place in order for tensor in stored[place])
        with ReadAhead(self._checkpoint.fetch, sizes) as ahead:
            self._ahead = ahead
            try:
                yield order
            finally:
                self._ahead = None

    def expect(self, weights: Sequence[Weight]) -> None:
        """See `llmd.api.expert_cache.ReadsAgain`."""
        self._advise(weights, needed=True)

    def give_back(self, weights: Sequence[Weight]) -> None:
        """See `llmd.api.expert_cache.ReadsAgain`."""
        self._advise(weights, needed=False)

    def _advise(self, weights: Sequence[Weight], *, needed: bool) -> None:
        for weight in weights:
            for stored, (first, last) in self._ranges(weight.ref):
                self._checkpoint.advise(stored.name, first, last, needed=needed)

    def _ranges(self, ref: TensorRef) -> Iterator[tuple[TensorInfo, tuple[int, int]]]:
        """Yield the tensors of the files that hold the members of a part, and the bytes of these members."""
        tensor = find_tensor(ref, self._checkpoint)
        in_one = ref.is_stack and ref.members is not None and not tensor.members
        first, last, count = (*(ref.members or (0, 1)), ref.shape[0]) if in_one else (0, 1, 1)
        for stored in self._stored(ref):
            yield stored, (stored.size_bytes * first // count, stored.size_bytes * last // count)

    def stored_blocks(self, weight: Weight) -> NDArray[np.uint8] | None:
        """See `TensorSource.stored_blocks`."""
        tensor = find_tensor(weight.ref, self._checkpoint)
        if tensor.format != weight.format or tensor.format not in BLOCK_FORMATS:
            return None
        return self.view(weight.ref).view(np.uint8)

    def view(self, ref: TensorRef) -> NDArray[np.generic]:
        """Return a part of a tensor as stored, in the shape `TensorRef.data_shape`: mapped if possible.

        Raises:
            CheckpointError: the tensor is missing or contradicts ``ref``, or its file has shrunk.
        """
        return self._part(find_tensor(ref, self._checkpoint), ref)

    def integers(self, ref: TensorRef) -> NDArray[np.generic]:
        """Return a table of integers as stored. See `TensorRef.integers_below`.

        Raises:
            CheckpointError: the tensor is missing or contradicts ``ref``, its file has shrunk, or an integer
                is out of range.
        """
        tensor, stored, below = find_tensor(ref, self._checkpoint), self.view(ref), ref.integers_below
        if below is not None and stored.size and not 0 <= stored.min() <= stored.max() < below:
            raise CheckpointError(
                f"has numbers in {stored.min()}..{stored.max()}, expected 0..{below - 1}",
                file=str(tensor.file),
                tensor=tensor.name,
                hint="the weights may be damaged; copy them again",
            )
        return stored

    def read(self, weight: Weight) -> WeightData:
        """Return a weight: mapped if stored as requested, plain and aligned; else decoded, converted or
        quantised.

        Raises:
            CheckpointError: the tensor is missing or contradicts ``weight.ref``, its file has shrunk, or its
                values do not fit the format.
        """
        tensor, ref = find_tensor(weight.ref, self._checkpoint), weight.ref
        if ref.integers_below is not None:
            numbers = self.integers(ref).astype(np.float32)
            numbers.flags.writeable = False
            return WeightData(weight.format, numbers)
        assert tensor.format is not None
        is_turned = ref.is_transposed and tensor.format not in PLAIN_FORMATS
        as_stored = ref.as_stored if is_turned else ref
        try:
            if tensor.format in PLAIN_FORMATS:
                read = self._of_plain(self.view(ref), tensor.format, weight.format)
            elif tensor.format in SCALED_FORMATS:
                read = self._of_scaled(self._scaled(tensor, as_stored), weight)
            else:
                blocks = self.view(as_stored).astype(np.uint8, copy=False)
                read = _of_blocks(blocks, tensor, weight.format)
                read = _turned(read, weight) if is_turned else read
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

    def _part(self, tensor: TensorInfo, ref: TensorRef) -> NDArray[np.generic]:
        if tensor.members:
            of_member = msgspec.structs.replace(ref, shape=ref.shape[1:], is_stack=False, members=None)
            parts = [self._part(member, of_member) for member in _members(tensor, ref)]
            rows = [part if ref.is_matrix else part[None] for part in parts]
            return rows[0] if len(rows) == 1 else np.concatenate(rows)
        if tensor.pieces:
            codes, scales = (self._part(piece, ref).view(np.uint8) for piece in tensor.pieces)
            _check_exponents(scales, tensor.pieces[1])
            return mxfp4_blocks(codes, scales)
        return ref.part_of(self._whole(tensor).reshape(*ref.shape[:-1], -1))

    def _scaled(self, tensor: TensorInfo, ref: TensorRef) -> WeightData:
        """Return a part of a tensor in a scaled format in this format.

        Raises:
            ArithmeticError: an element or a scale is not a finite number.
        """
        if tensor.members:
            of_member = msgspec.structs.replace(ref, shape=ref.shape[1:], is_stack=False, members=None)
            return _joined([self._scaled(member, of_member) for member in _members(tensor, ref)])
        if tensor.dtype == NVFP4:
            return read_nvfp4(tensor, ref, lambda piece: self._part(piece, ref), self._whole)
        codes, scales = tensor.pieces
        data = np.require(self._part(codes, ref), requirements="C").view(np.uint8)
        check_numbers(data)
        of_rows = row_scales(tensor, self._whole(scales), ref)
        assert tensor.format is not None
        return WeightData(tensor.format, data, GroupScales(of_rows.values), group_size=of_rows.group_size)

    def _of_scaled(self, data: WeightData, weight: Weight) -> WeightData:
        if weight.format == data.format:
            return data
        if weight.format in PLAIN_FORMATS:
            plain = WeightData(weight.format, _numbers(data, weight.format))
            return _turned(plain, weight) if weight.ref.is_transposed else plain
        numbers = WeightData("f32", dequantize(data))
        turned = _turned(numbers, weight) if weight.ref.is_transposed else numbers
        return quantize(turned.data, weight.format, "f32", self._quantizer)

    def _whole(self, tensor: TensorInfo) -> NDArray[np.generic]:
        """Return a tensor of a file as stored."""
        if self._ahead is not None:
            self._ahead.use(tensor.name)
        elif tensor.size_bytes <= SMALL_BYTES:
            self._fetch(tensor)
        return self._checkpoint.view(tensor.name)

    def _stored(self, ref: TensorRef) -> Sequence[TensorInfo]:
        """Return the tensors of the files that hold a part."""
        tensor = find_tensor(ref, self._checkpoint)
        return [stored for one in _members(tensor, ref) or (tensor,) for stored in one.stored]

    def _fetch(self, tensor: TensorInfo) -> None:
        try:
            self._checkpoint.fetch(tensor.name)
        except OSError as error:
            raise CheckpointError(
                f"cannot be read: {error.strerror}",
                file=str(tensor.file),
                tensor=tensor.name,
                hint="check the disk, and copy the model again",
            ) from error

    def _of_plain(self, data: NDArray[np.generic], stored: Format, wanted: Format) -> WeightData:
        if wanted in PLAIN_FORMATS:
            # A header of odd length leaves the data unaligned; only then does the stored format need a copy.
            return WeightData(wanted, np.require(convert(data, stored, wanted), requirements=("A", "C")))
        return quantize(data, wanted, stored, self._quantizer)


def _check_exponents(scales: NDArray[np.uint8], tensor: TensorInfo) -> None:
    """Check the scales of MXFP4 weights.

    Raises:
        CheckpointError: one is not a number.
    """
    if (scales == NO_EXPONENT).any():
        raise CheckpointError(
            "a scale is not a number",
            file=str(tensor.file),
            tensor=tensor.name,
            hint="the weights may be damaged; copy them again",
        )


def _members(tensor: TensorInfo, ref: TensorRef) -> Sequence[TensorInfo]:
    """Return the members of a stack that a reference means; none if it is stored as one tensor."""
    return tensor.members if ref.members is None else tensor.members[slice(*ref.members)]


def open_source(directory: str, packed: str, adapters: str, quantizer: Quantizer | None) -> CheckpointSource:
    """Open the checkpoint of a model directory, which stays open: see `SourceRecipe`.

    ``adapters`` is a JSON object of their directories or files by name.

    Raises:
        CheckpointError: a file is missing or damaged.
        NotFoundError: there is no such directory.
    """
    from llmd.models.adapters.opening import add_adapters
    from llmd.models.model_source import find_source

    source, named = find_source(Path(directory)), json.loads(adapters)
    checkpoint = source.open_checkpoint()
    try:
        if named:
            add_adapters(checkpoint, named, source.adapter_form())
    except BaseException:
        checkpoint.close()
        raise
    return CheckpointSource(checkpoint, Path(packed) if packed else None, quantizer)


def plain_numbers(wanted: Format, data: NDArray[np.generic], tensor: TensorInfo) -> NDArray[np.generic]:
    """Convert stored data of ``tensor`` to the plain format ``wanted``.

    Raises:
        ArithmeticError: a value does not fit.
    """
    assert tensor.format is not None
    if tensor.format in PLAIN_FORMATS:
        return convert(data, tensor.format, wanted)
    return _of_blocks(data.astype(np.uint8, copy=False), tensor, wanted).data


def _of_blocks(blocks: NDArray[np.uint8], tensor: TensorInfo, wanted: Format) -> WeightData:
    """Return the blocks of a GGUF file as integer groups, or dequantised."""
    assert tensor.format is not None
    row_len = tensor.shape[-1]
    rows = blocks.reshape(-1, blocks.shape[-1])
    if wanted == tensor.format:
        return _groups(rows, tensor.format, row_len)
    numbers = _numbers_of_blocks(rows, tensor.format, row_len, wanted)
    return WeightData(wanted, numbers.reshape(*blocks.shape[:-1], row_len))


def _joined(parts: Sequence[WeightData]) -> WeightData:
    """Return matrices in a scaled format, one below the other."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    scales = [part.scales.coarse for part in parts if part.scales is not None]
    codes = np.concatenate([part.data for part in parts])
    return WeightData(first.format, codes, GroupScales(np.concatenate(scales)), group_size=first.group_size)


def _turned(stored: WeightData, weight: Weight) -> WeightData:
    """Return plain matrices ``[out, in]`` that were read as the checkpoint has them: ``[in, out]``."""
    rows, cols = weight.ref.view_shape[-2:]
    matrices = stored.data.reshape(-1, cols, rows).swapaxes(1, 2)
    return WeightData(stored.format, np.ascontiguousarray(matrices).reshape(-1, cols))


def _groups(rows: NDArray[np.uint8], stored: Format, row_len: int) -> WeightData:
    groups = decode(stored, rows, row_len)
    for scales in (groups.scales, groups.minimums):
        if scales is not None and not np.isfinite(scales.coarse).all():
            raise ArithmeticError("a scale is infinite or not a number")
    return groups


def _numbers_of_blocks(
    rows: NDArray[np.uint8], stored: Format, row_len: int, wanted: Format
) -> NDArray[np.generic]:
    return _in_chunks(
        (len(rows), row_len), wanted, lambda chunk: dequantize(_groups(rows[chunk], stored, row_len))
    )


def _numbers(data: WeightData, wanted: Format) -> NDArray[np.generic]:
    num_rows, row_len = data.data.shape
    return _in_chunks((num_rows, row_len), wanted, lambda chunk: dequantize(data.rows(chunk)))


def _in_chunks(
    shape: tuple[int, int], wanted: Format, numbers_of: Callable[[slice], Float32]
) -> NDArray[np.generic]:
    """Dequantise a chunk of rows at a time, so that no whole embedding table is in memory as float32."""
    numbers = np.empty(shape, STORED_DTYPES[wanted])

    def of_rows(chunk: slice) -> None:
        numbers[chunk] = convert(numbers_of(chunk), "f32", wanted)

    for_row_chunks(*shape, of_rows)
    return numbers
