"""The weights of a program, on a card or streamed to it: matrices for products, tables and vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np

from llmd.api import (
    PLAIN_FORMATS,
    Adapt,
    KVDtype,
    Program,
    Progress,
    Router,
    StageLimits,
    StreamWeights,
    TensorSource,
    Weight,
    WeightData,
)
from llmd.api.expert_cache import ExpertCacheUse
from llmd.api.ops import FACTOR_OPS, TABLE_OPS
from llmd.api.streaming import resident_weights, streamed_weights
from llmd_backend_cuda.adapter_memory import AdapterMemory
from llmd_backend_cuda.attention_plan import scratch_bytes
from llmd_backend_cuda.expert_blocks import ExpertBlocks, ExpertLoading
from llmd_backend_cuda.expert_cache import ExpertCache, ExpertSteps
from llmd_backend_cuda.expert_memory import ExpertSizes
from llmd_backend_cuda.kv_memory import block_bytes
from llmd_backend_cuda.loaded import HostWeight, Item, Loaded, LoadedTable, PlacedWeights, Use
from llmd_backend_cuda.matrices import load_matrix, load_stack
from llmd_backend_cuda.ops.compress import part_groups
from llmd_backend_cuda.ops.embed import TableFormat
from llmd_backend_cuda.ops.indexer import index_groups, score_bytes
from llmd_backend_cuda.ops.linear import partial_bytes, rounded_bytes
from llmd_backend_cuda.ops.state_rows import StateRowsSizes
from llmd_backend_cuda.ops.streams import stream_bytes
from llmd_backend_cuda.outputs import Outputs
from llmd_backend_cuda.parts_memory import parts_bytes
from llmd_backend_cuda.runtime import Memory, Runtime
from llmd_backend_cuda.shapes import attention_shapes
from llmd_backend_cuda.stage import CudaStage
from llmd_backend_cuda.state_memory import slot_bytes
from llmd_backend_cuda.step_memory import StepMemory
from llmd_backend_cuda.tickets import COPIES_BYTES, handed_bytes
from llmd_backend_cuda.tuning import Tuner
from llmd_backend_cuda.weight_stream import StreamedPart, WeightStream


class CudaWeights:
    """See `llmd.api.LoadedWeights`."""

    def __init__(
        self,
        runtime: Runtime,
        program: Program,
        loaded: Loaded,
        tuner: Tuner | None = None,
        experts: ExpertCache | None = None,
    ) -> None:
        """``experts`` are those that need not be on the device; None: all are."""
        self._runtime = runtime
        self._experts = experts
        self._tuner = tuner
        self._program = program
        self._loaded: Loaded | None = loaded
        self._streamed = _streamed_parts(program, loaded)

    def kv_bytes(self, group: int, kv_dtype: KVDtype) -> int:
        described = self._program.groups[group]
        if described.kind == "state":
            return slot_bytes(described)
        if group in part_groups(self._program):
            return parts_bytes(described, kv_dtype)
        return block_bytes(described, kv_dtype, is_index=group in index_groups(self._program))

    def step_bytes(self, limits: StageLimits) -> int:
        program, shapes = self._program, attention_shapes(self._program)
        slots = 4 * limits.max_rows * sum(program.slot_widths)
        outputs = Outputs.num_bytes(program.vocab_size, limits) if program.has_head else 0
        return (
            slots
            + limits.tickets * (outputs + COPIES_BYTES + handed_bytes(program, limits))
            + StepMemory.num_bytes(program, limits, shapes)
            + scratch_bytes(shapes, limits, program.context_len)
            + sum(8 * len(table.inv_freq) for table in program.ropes)
            + rounded_bytes(program, limits)
            + partial_bytes(limits, self._runtime.num_processors)
            + score_bytes(program, limits)
            + stream_bytes(program, limits)
            + ExpertSizes.of(program, limits).num_bytes
            + AdapterMemory.num_bytes(program, limits)
            + StateRowsSizes.of(program, limits).num_bytes
            + WeightStream.num_bytes(self._streamed.values())
        )

    def stage(self, blocks: Mapping[int, int], limits: StageLimits) -> CudaStage:
        loaded, program = self.loaded, self._program
        stream = WeightStream(self._runtime, self._streamed) if self._streamed else None
        placed = loaded if stream is None else loaded.joined(stream.items())
        experts, steps = self._experts, None
        if experts is not None:
            placed = placed.joined(experts.items())
            steps = ExpertSteps(experts, limits.tickets)
        return CudaStage(
            self._runtime,
            program,
            PlacedWeights.of(program, placed, {} if experts is None else experts.of_weights()),
            blocks,
            limits,
            loaded,
            stream,
            self._tuner,
            steps,
        )

    def expert_cache(self) -> ExpertCacheUse | None:
        """See `llmd.api.expert_cache.CachesExperts`. The last steps are counted when others follow."""
        return None if self._experts is None else self._experts.use

    @property
    def expert_blocks(self) -> Sequence[ExpertBlocks]:
        """The experts in main memory."""
        return () if self._experts is None else self._experts.layers

    @property
    def loaded(self) -> Loaded:
        """What is in the device's memory.

        Raises:
            ValueError: the weights are closed.
        """
        if self._loaded is None:
            raise ValueError("these weights are closed")
        return self._loaded

    def close(self) -> None:
        self._loaded = None
        self._streamed = {}
        self._experts = None


def load_weights(
    runtime: Runtime,
    program: Program,
    tensors: TensorSource,
    progress: Progress,
    have: Sequence[CudaWeights],
    tuner: Tuner | None = None,
) -> CudaWeights:
    """Load every weight that ``have`` does not contain, those of streamed parts into main memory, and so
    experts of which only some are to be on the device.

    ``tuner`` measures the products of their stages, if there is one.

    Raises:
        MemoryBudgetError: the weights do not fit.
    """
    loaded = Loaded.empty()
    known = [one.loaded for one in have]
    uses = weight_uses(program)
    resident = set(resident_weights(program))
    experts = ExpertLoading(runtime, program, [layer for one in have for layer in one.expert_blocks])
    done, total = 0, sum(weight.num_bytes for weight in program.weights)
    with tensors.reading_ahead(program.weights) as order:
        for index in order:
            weight = program.weights[index]
            if index in experts.weights:
                experts.load(index, tensors)
            elif index in resident:
                _load(runtime, weight, uses[index], tensors, loaded, known)
            else:
                _load_streamed(runtime, weight, uses[index], tensors, loaded, known)
            done += weight.num_bytes
            progress(done, total)
    return CudaWeights(runtime, program, loaded, tuner, _cache(runtime, program, experts.layers()))


def _cache(runtime: Runtime, program: Program, layers: Sequence[ExpertBlocks]) -> ExpertCache | None:
    return ExpertCache(runtime, layers, program.expert_bytes or 0) if layers else None


def weight_uses(program: Program) -> dict[int, set[Use]]:
    """Return how each weight is used."""
    uses: dict[int, set[Use]] = {index: set() for index in range(len(program.weights))}
    for slotted in program.ops:
        for place, index in enumerate(slotted.weights):
            if index is None:
                continue
            is_first = place % 2 == 0  # biases have odd places
            if slotted.op.kind in FACTOR_OPS and is_first:
                uses[index].add("matrix")
            elif (
                isinstance(slotted.op, Adapt)
                or slotted.op.kind in TABLE_OPS
                or (isinstance(slotted.op, Router | StreamWeights) and place == 0)
            ):
                uses[index].add("table")
            else:
                uses[index].add("vector")
    return uses


def _streamed_parts(program: Program, loaded: Loaded) -> dict[int, StreamedPart]:
    """Return the weights of the streamed parts that have any."""
    uses = weight_uses(program)
    keys = {
        part: [(program.weights[index], use) for index in indices for use in sorted(uses[index])]
        for part, indices in streamed_weights(program).items()
    }
    return {part: {key: loaded.streamed[key] for key in found} for part, found in keys.items() if found}


def _load(
    runtime: Runtime,
    weight: Weight,
    uses: set[Use],
    tensors: TensorSource,
    loaded: Loaded,
    known: Sequence[Loaded],
) -> None:
    missing = set()
    for use in uses:
        shared = _shared(weight, use, known)
        if shared is None:
            missing.add(use)
        else:
            loaded.add(weight, shared)
    for item in _made(runtime, weight, missing, tensors).values():
        loaded.add(weight, item)


def _load_streamed(
    runtime: Runtime,
    weight: Weight,
    uses: set[Use],
    tensors: TensorSource,
    loaded: Loaded,
    known: Sequence[Loaded],
) -> None:
    """Load a weight into main memory: from the device if it is there, else the device arranges it."""
    for use in uses:
        key = (weight, use)
        found = next((one.streamed[key] for one in known if key in one.streamed), None)
        if found is None:
            on_device = _shared(weight, use, known) or _made(runtime, weight, {use}, tensors)[use]
            found = HostWeight.of(runtime, on_device)
        loaded.streamed[key] = found


def _made(runtime: Runtime, weight: Weight, uses: set[Use], tensors: TensorSource) -> dict[Use, Item]:
    """Return a weight for each of some uses, read once; of a stack of matrices, one member at a time."""
    ref = weight.ref
    if ref.is_stack and ref.is_matrix:
        assert uses <= {"matrix"}, "only products read stacks of matrices"
        first, end = ref.members or (0, ref.shape[0])

        def read(number: int) -> WeightData:
            return tensors.read(Weight(ref.member(first + number), weight.format))

        return {use: load_stack(runtime, end - first, read) for use in uses}
    data = tensors.read(weight) if uses else None
    return {} if data is None else {use: _LOADERS[use](runtime, data) for use in uses}


def _shared(weight: Weight, use: Use, known: Sequence[Loaded]) -> Item | None:
    return next((found for one in known if (found := one.find(weight, use)) is not None), None)


def _table(runtime: Runtime, data: WeightData) -> LoadedTable:
    assert data.format in PLAIN_FORMATS, "the device takes tables in plain formats only"
    contents = np.ascontiguousarray(data.data)
    memory = runtime.allocate(contents.nbytes)
    runtime.upload(memory, 0, contents)
    return LoadedTable(memory, cast("TableFormat", data.format))


def _vector(runtime: Runtime, data: WeightData) -> Memory:
    values = data.data
    if data.format == "bf16":
        wide = (values.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    else:
        wide = values.astype(np.float32)
    memory = runtime.allocate(wide.nbytes)
    runtime.upload(memory, 0, np.ascontiguousarray(wide))
    return memory


_LOADERS: Mapping[Use, Callable[[Runtime, WeightData], Item]] = {
    "matrix": load_matrix,
    "table": _table,
    "vector": _vector,
}
