"""The weights of a program on the CPU: plain ones and FP8 stay mapped, integers are packed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api import (
    INTEGER_FORMATS,
    SCALED_FORMATS,
    GroupScales,
    KVDtype,
    Program,
    Progress,
    StageLimits,
    TensorSource,
    Weight,
    WeightData,
    encode,
    step_buffer_bytes,
)
from llmd.api.byte_size import format_bytes
from llmd.api.errors import MemoryBudgetError
from llmd.api.machine import available_bytes
from llmd_backend_cpu import _ext
from llmd_backend_cpu.packed_writer import PackedWriter
from llmd_backend_cpu.stage import CpuStage
from llmd_backend_cpu.tickets import TicketArrays
from llmd_backend_cpu.topology import usable_processors


def load_weights(
    device: _ext.Device, program: Program, tensors: TensorSource, progress: Progress
) -> CpuWeights:
    """Load every weight.

    Packed weights come from the file of an earlier load. If there is none, they are packed, and the file is
    written while steps run.

    Raises:
        MemoryBudgetError: packed weights do not fit in memory; none has been packed.
    """
    native = _make_native(device, program)
    loading = _Loading(program, tensors, native, progress)
    loading.add()
    path = None if tensors.packed is None or not native.packed_bytes() else str(tensors.packed)
    available = available_bytes()
    if native.packed_bytes() > available:
        native.drop_strips()
    short = native.packed_bytes() > available
    if path is not None and _map(native, path, any_pages=short):
        return CpuWeights(program, native, left_bytes=available if short else None)
    if short:
        raise MemoryBudgetError(
            f"packed weights of {format_bytes(native.packed_bytes())} do not fit the {format_bytes(available)} that are free",
            hint="serve a smaller model, or move layers to another device with --split",
        )
    native.allocate_panels()
    if path is None:
        loading.pack()
    elif not native.read_packed(path):
        began = time.perf_counter()
        loading.pack()
        return CpuWeights(program, native, PackedWriter(native, path, time.perf_counter() - began))
    return CpuWeights(program, native)


def _map(native: _ext.Weights, path: str, *, any_pages: bool) -> bool:
    """Map the panels of a file and return whether it was mapped.

    The file must be in huge pages, and the machine must have one NUMA node, because a file is in the memory
    of one. ``any_pages`` lifts both conditions.
    """
    one_node = len({processor.node for processor in usable_processors()}) == 1
    return (one_node or any_pages) and native.map_packed(path, any_pages)


class _Member(msgspec.Struct, frozen=True):
    """A matrix to be packed: a weight, or a member of one that is a stack."""

    index: int
    """Of the weight in the program."""
    number: int
    """In the stack; 0 if the weight is none."""
    weight: Weight


class _Loading:
    """Copies weights from a source to native weights, in the order of the program."""

    def __init__(
        self, program: Program, tensors: TensorSource, native: _ext.Weights, progress: Progress
    ) -> None:
        self._weights = program.weights
        self._tensors = tensors
        self._native = native
        self._progress = progress
        self._done = 0
        self._total = sum(weight.num_bytes for weight in self._weights)

    def add(self) -> None:
        """Declare every weight, and add the data of those that are not packed."""
        for weight in self._weights:
            for number, matrix in enumerate(_matrices(weight)):
                if weight.format in INTEGER_FORMATS:
                    _add_integers(self._native, matrix, joins=number > 0)
                elif weight.format in SCALED_FORMATS:
                    _add_float8(self._native, self._tensors.read(matrix), joins=number > 0)
                    self._advance(matrix)
                else:
                    _add_plain(self._native, matrix, self._tensors.read(matrix), joins=number > 0)
                    self._advance(matrix)

    def pack(self) -> None:
        """Read and pack the quantised weights."""
        members = list(self._quantized())
        with self._tensors.reading_ahead([member.weight for member in members]) as order:
            for place in order:
                self._pack(members[place])
                self._advance(members[place].weight)

    def _pack(self, member: _Member) -> None:
        """Pack a quantised matrix: from the blocks of its file if it has any, else from its integers."""
        weight = member.weight
        blocks = self._tensors.stored_blocks(weight)
        if blocks is None or not self._native.pack_blocks(
            member.index, weight.format, blocks, member=member.number
        ):
            # If scales are not finite, `read` raises an error that names the weight.
            _pack_integers(self._native, member, self._tensors.read(weight))

    def _advance(self, weight: Weight) -> None:
        self._done += weight.num_bytes
        self._progress(self._done, self._total)

    def _quantized(self) -> Iterator[_Member]:
        for index, weight in enumerate(self._weights):
            if weight.format in INTEGER_FORMATS:
                for number, matrix in enumerate(_matrices(weight)):
                    yield _Member(index, number, matrix)


def _matrices(weight: Weight) -> Iterator[Weight]:
    """Yield the matrices of a stack, or else the weight itself."""
    ref = weight.ref
    if not (ref.is_stack and ref.is_matrix):
        yield weight
        return
    for number in range(*(ref.members or (0, ref.shape[0]))):
        yield Weight(ref.member(number), weight.format)


class CpuWeights:
    """See `llmd.api.LoadedWeights`.

    ``left_bytes`` is given if weights are pages of a file, which the system may drop and read again: the
    memory that may then be used for other purposes.
    """

    def __init__(
        self,
        program: Program,
        native: _ext.Weights,
        writer: PackedWriter | None = None,
        left_bytes: int | None = None,
    ) -> None:
        self._program = program
        self._native: _ext.Weights | None = native
        self.left_bytes = left_bytes
        self.writer = writer

    def kv_bytes(self, group: int, kv_dtype: KVDtype) -> int:
        return self._loaded().kv_block_bytes(group, kv_dtype)

    def step_bytes(self, limits: StageLimits) -> int:
        shared = step_buffer_bytes(self._program, msgspec.structs.replace(limits, tickets=0))
        return shared + limits.tickets * TicketArrays.allocate(self._program, limits).num_bytes

    def stage(self, blocks: Mapping[int, int], limits: StageLimits) -> CpuStage:
        needed = sum(self.kv_bytes(group, limits.kv_dtype) * count for group, count in blocks.items())
        free = available_bytes() if self.left_bytes is None else self.left_bytes
        if needed > free:
            raise MemoryBudgetError(
                f"KV pools of {format_bytes(needed)} do not fit the {format_bytes(free)} that are free",
                hint="lower --kv-memory, --slots or --max-ctx",
            )
        try:
            return CpuStage(self._program, self._loaded(), blocks, limits)
        except MemoryError as error:
            raise MemoryBudgetError(
                f"the system refused memory for KV pools of {format_bytes(needed)} and the step buffers",
                hint="lower --kv-memory, --slots or --max-ctx",
            ) from error

    def read_factors(self) -> int:
        """Read every weight that steps multiply by once, as fast as possible; return the bytes.

        No decode step can be faster.
        """
        return self._loaded().read_factors()

    def close(self) -> None:
        if self.writer is not None:
            self.writer.stop()
        self._native = None

    def _loaded(self) -> _ext.Weights:
        if self._native is None:
            raise ValueError("these weights are closed")
        return self._native


def _make_native(device: _ext.Device, program: Program) -> _ext.Weights:
    encoded = encode(program)
    return _ext.Weights(
        device,
        hidden_size=program.hidden_size,
        vocab_size=program.vocab_size,
        context_len=program.context_len,
        hidden_in=-1 if program.hidden_in is None else program.hidden_in,
        hidden_out=-1 if program.hidden_out is None else program.hidden_out,
        slot_widths=list(program.slot_widths),
        groups=[
            (
                len(g.layers),
                g.kv_heads,
                g.head_dim,
                g.window or 0,
                g.state_bytes,
                g.value_dim if g.kind == "latent" else 0,
            )
            for g in program.groups
        ],
        ropes=[(list(table.inv_freq), table.factor) for table in program.ropes],
        records=encoded.records.tolist(),
        floats=encoded.floats.tolist(),
        rounds=program.activations != "f32",
    )


def _add_plain(native: _ext.Weights, weight: Weight, data: WeightData, *, joins: bool) -> None:
    """Add a plain weight: a vector, or a stack of vectors, is widened; a matrix is used in place."""
    elements: NDArray[np.float32] | NDArray[np.uint16]
    elements = data.data.view(np.float32) if data.format == "f32" else data.data.view(np.uint16)
    if weight.ref.is_matrix:
        native.add_matrix(data.format, elements, joins=joins)
    else:
        native.add_vector(data.format, elements.reshape(-1))


def _add_float8(native: _ext.Weights, data: WeightData, *, joins: bool) -> None:
    """Add a matrix of FP8 numbers, which is used in place with its scales."""
    assert data.scales is not None, "scaled weights have scales"
    scales = data.scales.coarse.view(np.float32)
    native.add_float8(data.data.view(np.uint8), scales, data.group_size, joins=joins)


def _add_integers(native: _ext.Weights, weight: Weight, *, joins: bool) -> None:
    """Declare the shape and format of a quantised weight."""
    integers = INTEGER_FORMATS[weight.format]
    rows, cols = weight.ref.data_shape
    native.add_integers(
        rows,
        cols,
        # One scale per row is the same as an equal scale for each of its activation groups.
        group_size=integers.row_group_size(cols) if integers.group_size else integers.activation_group(cols),
        coarse_size=integers.coarse_size,
        bits=integers.bits,
        zero=integers.zero,
        has_minimum=integers.has_minimum,
        wide_scales=integers.wide_scales,
        book=list(integers.book),
        in_int8=integers.in_int8,
        outliers=integers.outliers,
        joins=joins,
    )


def _pack_integers(native: _ext.Weights, member: _Member, data: WeightData) -> None:
    """Pack the integers of a quantised weight."""
    assert data.scales is not None, "integer weights have scales"
    minimums, outliers = data.minimums, data.outliers
    native.pack(
        member.index,
        data.data.view(np.uint8),
        _bits(data.scales.coarse),
        _fine(data.scales),
        None if minimums is None else _bits(minimums.coarse),
        None if minimums is None else _fine(minimums),
        None if outliers is None else outliers.columns,
        None if outliers is None else outliers.residuals,
        member=member.number,
    )


def _bits(coarse: NDArray[np.floating]) -> NDArray[np.uint16] | NDArray[np.float32]:
    return coarse.view(np.float32) if coarse.dtype == np.float32 else coarse.view(np.uint16)


def _fine(scales: GroupScales) -> NDArray[np.int8] | None:
    return None if scales.fine is None else scales.fine.view(np.int8)
