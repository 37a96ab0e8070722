"""The weights of a program on the CPU: plain ones and FP8 stay mapped, integers are packed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

import msgspec

from llmd.api import (
    INTEGER_FORMATS,
    SCALED_FORMATS,
    KVDtype,
    Program,
    Progress,
    StageLimits,
    TensorSource,
    Weight,
    encode,
    step_buffer_bytes,
)
from llmd.api.byte_size import format_bytes
from llmd.api.errors import MemoryBudgetError
from llmd.api.expert_cache import ExpertCacheUse, expert_stacks
from llmd.api.machine import available_bytes
from llmd_backend_cpu import _ext
from llmd_backend_cpu.expert_reader import ExpertReader
from llmd_backend_cpu.matrices import (
    Member,
    add_absent,
    add_float8,
    add_integers,
    add_plain,
    matrices,
    members_of,
    pack,
)
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
    if program.expert_bytes is not None:
        native.cache_experts(program.expert_bytes, ExpertReader(program, tensors, native))
    loading.add()
    if program.expert_bytes is not None:
        _begin_cache(native, program.expert_bytes)
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


def _begin_cache(native: _ext.Weights, budget_bytes: int) -> None:
    native.begin_cache()
    if native.largest_expert() > budget_bytes:
        raise MemoryBudgetError(
            f"an expert of {format_bytes(native.largest_expert())} does not fit the"
            f" {format_bytes(budget_bytes)} for experts",
            hint="raise --max-memory, or quantise the model with --quant",
        )


def _map(native: _ext.Weights, path: str, *, any_pages: bool) -> bool:
    """Map the panels of a file and return whether it was mapped.

    The file must be in huge pages, and the machine must have one NUMA node, because a file is in the memory
    of one. ``any_pages`` lifts both conditions.
    """
    one_node = len({processor.node for processor in usable_processors()}) == 1
    return (one_node or any_pages) and native.map_packed(path, any_pages)


class _Loading:
    """Copies weights from a source to native weights, in the order of the program."""

    def __init__(
        self, program: Program, tensors: TensorSource, native: _ext.Weights, progress: Progress
    ) -> None:
        self._weights = program.weights
        self._cached = frozenset[int]() if program.expert_bytes is None else expert_stacks(program)
        self._tensors = tensors
        self._native = native
        self._progress = progress
        self._done = 0
        whole = (weight for index, weight in enumerate(self._weights) if index not in self._cached)
        self._total = sum(weight.num_bytes for weight in whole)

    def add(self) -> None:
        """Declare every weight, and add the data of those that are not packed."""
        for index, weight in enumerate(self._weights):
            for number, matrix in enumerate(matrices(weight)):
                if weight.format in INTEGER_FORMATS:
                    add_integers(self._native, matrix, joins=number > 0)
                elif index in self._cached:
                    add_absent(self._native, matrix, self._tensors, joins=number > 0)
                elif weight.format in SCALED_FORMATS:
                    add_float8(self._native, self._tensors.read(matrix), joins=number > 0)
                    self._advance(matrix)
                else:
                    add_plain(self._native, matrix, self._tensors.read(matrix), joins=number > 0)
                    self._advance(matrix)

    def pack(self) -> None:
        """Read and pack the quantised weights."""
        members = list(self._quantized())
        with self._tensors.reading_ahead([member.weight for member in members]) as order:
            for place in order:
                pack(self._native, members[place], self._tensors)
                self._advance(members[place].weight)

    def _advance(self, weight: Weight) -> None:
        self._done += weight.num_bytes
        self._progress(self._done, self._total)

    def _quantized(self) -> Iterator[Member]:
        for index, weight in enumerate(self._weights):
            if weight.format in INTEGER_FORMATS and index not in self._cached:
                yield from members_of(index, weight)


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
        free = available_bytes() - self.unfilled_bytes if self.left_bytes is None else self.left_bytes
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

    def expert_cache(self) -> ExpertCacheUse | None:
        """See `llmd.api.expert_cache.CachesExperts`."""
        return None if self._program.expert_bytes is None else ExpertCacheUse(*self._loaded().expert_counts())

    @property
    def unfilled_bytes(self) -> int:
        """Bytes that cached experts may take in addition to what they have."""
        use, most = self.expert_cache(), self._program.expert_bytes
        if use is None or most is None:
            return 0
        return max(0, min(most, self._loaded().expert_bytes()) - use.held_bytes)

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
                g.stride,
            )
            for g in program.groups
        ],
        ropes=[(list(table.inv_freq), table.factor) for table in program.ropes],
        records=encoded.records.tolist(),
        floats=encoded.floats.tolist(),
        rounds=program.activations != "f32",
    )
