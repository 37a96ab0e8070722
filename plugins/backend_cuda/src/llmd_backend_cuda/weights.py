"""The weights of a program on a card: matrices for products, tables of rows, and vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import msgspec
import numpy as np

from llmd.api import (
    PLAIN_FORMATS,
    KVDtype,
    Program,
    Progress,
    StageLimits,
    TensorSource,
    Weight,
    WeightData,
)
from llmd.api.ops import FACTOR_OPS, TABLE_OPS
from llmd_backend_cuda.attention_plan import scratch_bytes
from llmd_backend_cuda.kv_memory import block_bytes
from llmd_backend_cuda.matrices import DeviceMatrix, load_matrix
from llmd_backend_cuda.ops.embed import Table, TableFormat
from llmd_backend_cuda.ops.linear import partial_bytes, rounded_bytes
from llmd_backend_cuda.outputs import Outputs
from llmd_backend_cuda.runtime import Memory, Runtime
from llmd_backend_cuda.shapes import attention_shapes
from llmd_backend_cuda.stage import CudaStage
from llmd_backend_cuda.state_memory import slot_bytes
from llmd_backend_cuda.step_memory import StepMemory
from llmd_backend_cuda.tickets import COPIES_BYTES


class LoadedTable(msgspec.Struct, frozen=True):
    """A table in device memory, as the file has it."""

    memory: Memory
    format: TableFormat

    @property
    def table(self) -> Table:
        """The table for kernels."""
        return Table(self.memory.pointer, self.format)


class Loaded(msgspec.Struct):
    """Weights by use: the same weight may be a matrix and a table."""

    matrices: dict[Weight, DeviceMatrix]
    tables: dict[Weight, LoadedTable]
    vectors: dict[Weight, Memory]


class CudaWeights:
    """See `llmd.api.LoadedWeights`."""

    def __init__(self, runtime: Runtime, program: Program, loaded: Loaded) -> None:
        self._runtime = runtime
        self._program = program
        self._loaded: Loaded | None = loaded

    def kv_bytes(self, group: int, kv_dtype: KVDtype) -> int:
        described = self._program.groups[group]
        return slot_bytes(described) if described.kind == "state" else block_bytes(described, kv_dtype)

    def step_bytes(self, limits: StageLimits) -> int:
        program, shapes = self._program, attention_shapes(self._program)
        slots = 4 * limits.max_rows * sum(program.slot_widths)
        outputs = Outputs.num_bytes(program.vocab_size, limits) if program.has_head else 0
        return (
            slots
            + limits.tickets * (outputs + COPIES_BYTES)
            + StepMemory.num_bytes(program, limits, shapes)
            + scratch_bytes(shapes, limits, program.context_len)
            + sum(8 * len(table.inv_freq) for table in program.ropes)
            + rounded_bytes(program, limits)
            + partial_bytes(limits, self._runtime.num_processors)
        )

    def stage(self, blocks: Mapping[int, int], limits: StageLimits) -> CudaStage:
        loaded = self.loaded
        matrices = [loaded.matrices.get(weight) for weight in self._program.weights]
        vectors = [loaded.vectors.get(weight) for weight in self._program.weights]
        tables = {
            index: loaded.tables[weight].table
            for index, weight in enumerate(self._program.weights)
            if weight in loaded.tables
        }
        return CudaStage(self._runtime, self._program, matrices, vectors, tables, blocks, limits, loaded)

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


def load_weights(
    runtime: Runtime,
    program: Program,
    tensors: TensorSource,
    progress: Progress,
    have: Sequence[CudaWeights],
) -> CudaWeights:
    """Load every weight that ``have`` does not contain.

    Raises:
        MemoryBudgetError: the weights do not fit.
    """
    loaded = Loaded({}, {}, {})
    known = [one.loaded for one in have]
    uses = weight_uses(program)
    with tensors.reading_ahead(program.weights) as order:
        for done, index in enumerate(order):
            weight = program.weights[index]
            _load(runtime, weight, uses[index], tensors, loaded, known)
            progress(done + 1, len(program.weights))
    return CudaWeights(runtime, program, loaded)


def weight_uses(program: Program) -> dict[int, set[str]]:
    """Return how each weight is used: as ``matrix``, ``table`` or ``vector``."""
    uses: dict[int, set[str]] = {index: set() for index in range(len(program.weights))}
    for slotted in (s for instruction in program.instructions for s in instruction.ops):
        for place, index in enumerate(slotted.weights):
            if index is None:
                continue
            is_first = place % 2 == 0  # biases have odd places
            if slotted.op.kind in FACTOR_OPS and is_first:
                uses[index].add("matrix")
            elif slotted.op.kind in TABLE_OPS:
                uses[index].add("table")
            else:
                uses[index].add("vector")
    return uses


def _load(
    runtime: Runtime,
    weight: Weight,
    uses: set[str],
    tensors: TensorSource,
    loaded: Loaded,
    known: Sequence[Loaded],
) -> None:
    missing = set()
    for use in uses:
        mine = _of_use(loaded, use)
        shared = next((found for one in known if (found := _of_use(one, use).get(weight)) is not None), None)
        if shared is None:
            missing.add(use)
        else:
            mine[weight] = shared
    if not missing:
        return
    data = tensors.read(weight)
    if "matrix" in missing:
        loaded.matrices[weight] = load_matrix(runtime, data)
    if "table" in missing:
        loaded.tables[weight] = _table(runtime, data)
    if "vector" in missing:
        loaded.vectors[weight] = _vector(runtime, data)


def _of_use(loaded: Loaded, use: str) -> dict[Weight, object]:
    found = {"matrix": loaded.matrices, "table": loaded.tables, "vector": loaded.vectors}[use]
    return cast("dict[Weight, object]", found)


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
