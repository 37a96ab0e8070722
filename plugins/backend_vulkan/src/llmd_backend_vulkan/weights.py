"""The weights of a program on a device: matrices (also those that rows are looked up in) and vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from llmd.api import (
    HOST_MEMORY,
    Adapt,
    KVDtype,
    Program,
    Progress,
    Router,
    SlottedOp,
    StageLimits,
    StreamWeights,
    TensorSource,
    Weight,
    WeightData,
)
from llmd.api.ops import FACTOR_OPS, TABLE_OPS
from llmd.api.streaming import streamed_weights
from llmd_backend_vulkan.commands import WORD
from llmd_backend_vulkan.kv_memory import block_bytes
from llmd_backend_vulkan.matrices import DeviceMatrix, load_matrix, load_stack
from llmd_backend_vulkan.memory import Arena, HostArena, Region
from llmd_backend_vulkan.stage import VulkanStage
from llmd_backend_vulkan.stage_memory import StageMemory
from llmd_backend_vulkan.streaming import Placed, slots_bytes
from llmd_backend_vulkan.tickets import TicketMemory
from llmd_backend_vulkan.tuning import Tuner


class Loaded(msgspec.Struct):
    """Weights by use, in one kind of memory: the same weight may be a matrix and a vector."""

    matrices: dict[Weight, DeviceMatrix] = {}
    vectors: dict[Weight, Region] = {}


class LoadedBoth(msgspec.Struct):
    """Weights by the memory that they are in."""

    resident: Loaded = msgspec.field(default_factory=Loaded)
    """In the device's memory."""
    streamed: Loaded = msgspec.field(default_factory=Loaded)
    """In the host's."""


class VulkanWeights:
    """See `llmd.api.LoadedWeights`."""

    def __init__(self, arena: Arena, program: Program, loaded: LoadedBoth) -> None:
        self._arena = arena
        self._program = program
        self._loaded: LoadedBoth | None = loaded

    def kv_bytes(self, group: int, kv_dtype: KVDtype) -> int:
        return block_bytes(self._program.groups[group], kv_dtype)

    def step_bytes(self, limits: StageLimits) -> int:
        words = StageMemory.num_words(self._program, limits)
        if self._arena.runtime.device.memory_id == HOST_MEMORY:
            words += limits.tickets * TicketMemory.num_words(self._program, limits)
        runtime = self._arena.runtime
        slots = slots_bytes(self._program, self.placed(), runtime.most_words) if runtime.has_additions else 0
        return WORD * words + slots

    def stage(self, blocks: Mapping[int, int], limits: StageLimits) -> VulkanStage:
        return VulkanStage(self._arena, self._program, self.placed(), blocks, limits)

    def placed(self) -> Placed:
        """Return the weights by index, streamed ones in memory of the host.

        Raises:
            ValueError: the weights are closed.
        """
        loaded, streamed = self.loaded, set().union(*streamed_weights(self._program).values())
        memories = [
            loaded.streamed if index in streamed else loaded.resident
            for index in range(len(self._program.weights))
        ]
        pairs = list(zip(memories, self._program.weights, strict=True))
        return Placed(
            [memory.matrices.get(weight) for memory, weight in pairs],
            [memory.vectors.get(weight) for memory, weight in pairs],
        )

    @property
    def loaded(self) -> LoadedBoth:
        """What is in memory.

        Raises:
            ValueError: the weights are closed.
        """
        if self._loaded is None:
            raise ValueError("these weights are closed")
        return self._loaded

    def close(self) -> None:
        self._loaded = None


def load_weights(
    arena: Arena,
    program: Program,
    tensors: TensorSource,
    progress: Progress,
    have: Sequence[VulkanWeights],
    tuner: Tuner | None = None,
) -> VulkanWeights:
    """Load every weight that ``have`` does not contain; ``tuner`` finds the tiles of those in device memory.

    Raises:
        MemoryBudgetError: the weights do not fit.
    """
    loaded, known = LoadedBoth(), [one.loaded for one in have]
    to_device = arena, loaded.resident, [one.resident for one in known]
    to_host = HostArena(arena.runtime), loaded.streamed, [one.streamed for one in known]
    streamed, uses = set().union(*streamed_weights(program).values()), weight_uses(program)
    tuned = weight_factors(program) - streamed
    done, total = 0, sum(weight.num_bytes for weight in program.weights)
    with tensors.reading_ahead(program.weights) as order:
        for index in order:
            weight = program.weights[index]
            target = to_host if index in streamed else to_device
            _load(*target, weight, uses[index], tensors)
            if tuner is not None and index in tuned:
                _tune(tuner, loaded.resident, weight)
            done += weight.num_bytes
            progress(done, total)
    arena.drop_staging()
    return VulkanWeights(arena, program, loaded)


def weight_uses(program: Program) -> dict[int, set[str]]:
    """Return how each weight is used: as ``matrix`` or ``vector``."""
    uses: dict[int, set[str]] = {index: set() for index in range(len(program.weights))}
    for slotted in program.ops:
        for place, index in enumerate(slotted.weights):
            if index is not None:
                is_matrix = _reads_tables(slotted) or place in _matrix_places(slotted)
                uses[index].add("matrix" if is_matrix else "vector")
    return uses


def _reads_tables(slotted: SlottedOp) -> bool:
    """Return whether an op reads matrices otherwise than `llmd_backend_vulkan.ops.linear.products` do."""
    return slotted.op.kind in TABLE_OPS or isinstance(slotted.op, Adapt)


def _matrix_places(slotted: SlottedOp) -> range:
    """Return the places of the weights that an op multiplies by: biases of most products have odd places."""
    if isinstance(slotted.op, Router | StreamWeights):
        return range(1)
    return range(0, len(slotted.weights) if slotted.op.kind in FACTOR_OPS else 0, 2)


def weight_factors(program: Program) -> set[int]:
    """Return the indices of the weights that rows are multiplied by."""
    found = (slotted.weights[place] for slotted in program.ops for place in _matrix_places(slotted))
    return {index for index in found if index is not None}


def _tune(tuner: Tuner, loaded: Loaded, weight: Weight) -> None:
    matrix = loaded.matrices[weight]
    loaded.matrices[weight] = msgspec.structs.replace(matrix, tiles=tuner.tiles(matrix))


def _load(
    arena: Arena,
    loaded: Loaded,
    known: Sequence[Loaded],
    weight: Weight,
    uses: set[str],
    tensors: TensorSource,
) -> None:
    missing = set(uses)
    for one in known:
        if "matrix" in missing and weight in one.matrices:
            loaded.matrices[weight] = one.matrices[weight]
            missing.remove("matrix")
        if "vector" in missing and weight in one.vectors:
            loaded.vectors[weight] = one.vectors[weight]
            missing.remove("vector")
    if not missing:
        return
    if weight.ref.is_stack and weight.ref.is_matrix:
        assert missing == {"matrix"}, "only products read stacks of matrices"
        loaded.matrices[weight] = _stack(arena, weight, tensors)
        return
    data = tensors.read(weight)
    if "matrix" in missing:
        loaded.matrices[weight] = load_matrix(arena, data)
    if "vector" in missing:
        loaded.vectors[weight] = _vector(arena, data)


def _stack(arena: Arena, weight: Weight, tensors: TensorSource) -> DeviceMatrix:
    """Load a stack of matrices, one member at a time."""
    ref = weight.ref
    first, end = ref.members or (0, ref.shape[0])

    def read(number: int) -> WeightData:
        return tensors.read(Weight(ref.member(first + number), weight.format))

    return load_stack(arena, end - first, read)


def _vector(arena: Arena, data: WeightData) -> Region:
    values = data.data
    if data.format == "bf16":
        wide = (values.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    else:
        wide = values.astype(np.float32)
    region = arena.take(wide.size)
    arena.upload(region, 0, wide)
    return region
