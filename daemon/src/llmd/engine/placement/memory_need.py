"""Estimate the memory that a model needs on its devices, from headers only."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from llmd.api.device import DeviceInfo, StageLimits
from llmd.api.kv import kv_block_bytes
from llmd.api.messages import Load
from llmd.api.step_buffers import step_buffer_bytes
from llmd.engine.limits import EmbeddingLimits
from llmd.engine.placement.kv_budget import NO_LIMIT, KVMemory, plan_kv
from llmd.engine.placement.memory_use import MemoryUse, by_memory, pool_bytes
from llmd.engine.placement.stages import StageParts, lower_stage, place_parts, stage_limits
from llmd.models.open_model import OpenModel
from llmd.models.program_bytes import (
    absent_bytes,
    main_memory_expert_bytes,
    resident_bytes,
    stream_buffer_bytes,
    streamed_bytes,
)

LEAST_KV_TOKENS = 2048
"""Smallest useful KV capacity: a model with less is not worth loading."""


class MemoryNeed(msgspec.Struct, frozen=True):
    """Bytes that a model needs of one memory."""

    weight_bytes: int
    """Weights in the formats of their devices."""
    kv_bytes: int
    """The KV pools that were asked for, or else the smallest useful ones."""
    most_kv_bytes: int
    """The largest KV pools that the engine may allocate."""
    step_bytes: int = 0
    """Step buffers."""
    memory_bytes: int = 0
    """Size of the memory, as its devices state it; 0: none computes there."""
    limit_bytes: int | None = None
    """Most bytes of it for all models, if the user has set a limit."""
    devices: tuple[str, ...] = ()
    """Names of the devices that compute in it."""
    absent_bytes: int = 0
    """Bytes of experts for which there is no room: steps that use them read them from main memory if this is
    another one, else from the files."""

    @property
    def total_bytes(self) -> int:
        return self.weight_bytes + self.kv_bytes + self.step_bytes


class _Stage(msgspec.Struct, frozen=True):
    info: DeviceInfo
    use: MemoryUse
    absent_bytes: int


def needs_of(load: Load, model: OpenModel, device: Callable[[str], DeviceInfo]) -> dict[str, MemoryNeed]:
    """Estimate what a load needs of each memory, by `DeviceInfo.memory_id`.

    ``load`` and ``model`` come from `with_default_quant`; ``device`` returns the device of a name.

    Raises:
        LlmdError: the model cannot be loaded on these devices.
    """
    specs = place_parts(load, model.plan)
    infos = [device(spec.device) for spec in specs]
    limits = stage_limits(load, model, infos)
    stages = [_stage(load, model, info, spec, limits) for info, spec in zip(infos, specs, strict=True)]
    uses = by_memory(stage.use for stage in stages)
    least, most = _kv_blocks(load, model, uses.values())
    needs = {}
    for memory_id, use in uses.items():
        inside = [stage for stage in stages if stage.info.memory_id == memory_id]
        owners = [stage.info for stage in inside]
        options = [load.options_of(info.name).memory_bytes for info in owners]
        needs[memory_id] = MemoryNeed(
            use.weight_bytes,
            pool_bytes(least, use.block_bytes),
            pool_bytes(most, use.block_bytes),
            use.step_bytes,
            min((info.memory_bytes for info in owners), default=0),
            min((limit for limit in options if limit is not None), default=None),
            tuple(dict.fromkeys(info.name for info in owners)),
            sum(stage.absent_bytes for stage in inside),
        )
    return needs


def _stage(load: Load, model: OpenModel, info: DeviceInfo, spec: StageParts, limits: StageLimits) -> _Stage:
    program = lower_stage(load, model, info, spec)
    use = MemoryUse(
        info.memory_id,
        resident_bytes(program),
        step_buffer_bytes(program, limits) + stream_buffer_bytes(program),
        tuple(kv_block_bytes(group, load.kv_dtype) if group.layers else 0 for group in program.groups),
        streamed_bytes(program),
        main_memory_expert_bytes(program, info),
    )
    return _Stage(info, use, absent_bytes(program))


def _kv_blocks(
    load: Load, model: OpenModel, uses: Iterable[MemoryUse]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the blocks of each KV group in the smallest and in the largest pools of a load."""
    groups = model.plan.groups
    slots, most_len, chunk_len = load.slots, model.plan.context_len, load.chunk_len
    if model.embedding is not None:
        limits = EmbeddingLimits.of(model.plan, load.chunk_len)
        slots, most_len, chunk_len = 1, limits.kv_len, limits.kv_chunk_len
    memories = [KVMemory(use.memory_id, use.block_bytes, NO_LIMIT) for use in uses]
    most = plan_kv(
        groups,
        memories,
        slots=slots,
        context_len=most_len,
        chunk_len=chunk_len,
        total_bytes=load.kv_memory,
    ).num_blocks
    if load.kv_memory is not None:
        return most, most
    least_len = min(most_len, LEAST_KV_TOKENS)
    least = plan_kv(groups, memories, slots=1, context_len=least_len, chunk_len=chunk_len)
    return least.num_blocks, most
