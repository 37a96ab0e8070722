"""The weights of a program on a device: matrices (also those that rows are looked up in) and vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from llmd.api import HOST_MEMORY, KVDtype, Program, Progress, StageLimits, TensorSource, Weight, WeightData
from llmd.api.ops import FACTOR_OPS, TABLE_OPS
from llmd_backend_vulkan.kv_memory import block_bytes
from llmd_backend_vulkan.matrices import DeviceMatrix, load_matrix
from llmd_backend_vulkan.memory import Arena, Region
from llmd_backend_vulkan.runtime import WORD
from llmd_backend_vulkan.stage import VulkanStage
from llmd_backend_vulkan.stage_memory import StageMemory
from llmd_backend_vulkan.tickets import TicketMemory


class Loaded(msgspec.Struct):
    """Weights by use: the same weight may be a matrix and a vector."""

    matrices: dict[Weight, DeviceMatrix]
    vectors: dict[Weight, Region]


class VulkanWeights:
    """See `llmd.api.LoadedWeights`."""

    def __init__(self, arena: Arena, program: Program, loaded: Loaded) -> None:
        self._arena = arena
        self._program = program
        self._loaded: Loaded | None = loaded

    def kv_bytes(self, group: int, kv_dtype: KVDtype) -> int:
        return block_bytes(self._program.groups[group], kv_dtype)

    def step_bytes(self, limits: StageLimits) -> int:
        words = StageMemory.num_words(self._program, limits)
        if self._arena.runtime.device.memory_id == HOST_MEMORY:
            words += limits.tickets * TicketMemory.num_words(self._program, limits)
        return WORD * words

    def stage(self, blocks: Mapping[int, int], limits: StageLimits) -> VulkanStage:
        loaded = self.loaded
        matrices = [loaded.matrices.get(weight) for weight in self._program.weights]
        vectors = [loaded.vectors.get(weight) for weight in self._program.weights]
        return VulkanStage(self._arena, self._program, matrices, vectors, blocks, limits)

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
    arena: Arena, program: Program, tensors: TensorSource, progress: Progress, have: Sequence[VulkanWeights]
) -> VulkanWeights:
    """Load every weight that ``have`` does not contain.

    Raises:
        MemoryBudgetError: the weights do not fit.
    """
    loaded = Loaded({}, {})
    known = [one.loaded for one in have]
    uses = weight_uses(program)
    with tensors.reading_ahead(program.weights) as order:
        for done, index in enumerate(order):
            _load(arena, program.weights[index], uses[index], tensors, loaded, known)
            progress(done + 1, len(program.weights))
    arena.drop_staging()
    return VulkanWeights(arena, program, loaded)


def weight_uses(program: Program) -> dict[int, set[str]]:
    """Return how each weight is used: as ``matrix`` or ``vector``."""
    uses: dict[int, set[str]] = {index: set() for index in range(len(program.weights))}
    for slotted in (s for instruction in program.instructions for s in instruction.ops):
        for place, index in enumerate(slotted.weights):
            if index is not None:
                # Of products, biases have odd places.
                is_matrix = slotted.op.kind in TABLE_OPS or (slotted.op.kind in FACTOR_OPS and place % 2 == 0)
                uses[index].add("matrix" if is_matrix else "vector")
    return uses


def _load(
    arena: Arena,
    weight: Weight,
    uses: set[str],
    tensors: TensorSource,
    loaded: Loaded,
    known: Sequence[Loaded],
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
    data = tensors.read(weight)
    if "matrix" in missing:
        loaded.matrices[weight] = load_matrix(arena, data)
    if "vector" in missing:
        loaded.vectors[weight] = _vector(arena, data)


def _vector(arena: Arena, data: WeightData) -> Region:
    values = data.data
    if data.format == "bf16":
        wide = (values.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    else:
        wide = values.astype(np.float32)
    region = arena.take(wide.size)
    arena.upload(region, 0, wide)
    return region
