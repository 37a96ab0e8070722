"""How much of the experts of a model is in memory, if there is no room for all of them."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable

from msgspec import structs

from llmd.api.device import HOST_MEMORY, DeviceInfo
from llmd.api.errors import LlmdError
from llmd.api.expert_cache import expert_stacks
from llmd.api.messages import Load
from llmd.api.program import Program
from llmd.api.streaming import may_stream
from llmd.engine.placement.candidates import Candidate, MachineDevices
from llmd.engine.placement.default_quant import with_default_quant
from llmd.engine.placement.memory_need import MemoryNeed, needs_of
from llmd.engine.placement.stages import caches_experts, lower_stage, place_parts
from llmd.engine.step_reads import expert_reads
from llmd.models.checkpoint import Checkpoint
from llmd.models.open_model import OpenModel
from llmd.models.plan_check import find_tensor
from llmd.models.program_bytes import expert_bytes

KV_PART = 16
"""The KV pools get at least this part of a memory, if they can use it, before experts get the rest."""
ENGINE_BYTES = 64 << 20
"""What the engine's process takes of main memory before it loads a model, rounded up."""


def with_expert_share(load: Load, model: OpenModel, devices: MachineDevices) -> Load:
    """Return the load with the share of its experts for which its devices have room.

    It stays as it is if there is room for all, if other weights do not fit either, if its devices cannot read
    experts when steps use them, or if main memory has no room for those that a card reads from there.
    """
    with contextlib.suppress(LlmdError):
        asked, opened = with_default_quant(load, model)
        specs = place_parts(asked, opened.plan)
        named = {spec.device: devices.info(spec.device) for spec in specs}
        caching = [info for info in named.values() if caches_experts(asked, info)]
        if caching and load.expert_share >= 1.0:
            device = devices.usable([caching[0].name])[0]
            share = _share(asked, opened, caching[0].memory_id, devices.room(device), named.__getitem__)
            fewer = structs.replace(asked, expert_share=share)
            if share < 1.0 and _main_memory_has_room(fewer, opened, caching[0], devices.main_memory_room()):
                return structs.replace(load, expert_share=share)
    return load


def share_on(load: Load, model: OpenModel, candidate: Candidate) -> float:
    """Return the share of the experts for which a device has room that has the whole model.

    1 also if other weights do not fit either, if the device cannot read experts when steps use them, or if
    main memory has no room for those that a card reads from there.
    """
    alone = structs.replace(load, device=candidate.info.name, stages=())
    info = candidate.info
    if not caches_experts(alone, info):
        return 1.0
    share = _share(alone, model, info.memory_id, candidate.free_bytes, lambda _name: info)
    fewer = structs.replace(alone, expert_share=share)
    return share if _main_memory_has_room(fewer, model, info, candidate.host_free_bytes) else 1.0


def _share(
    load: Load, model: OpenModel, memory_id: str, room_bytes: int, device: Callable[[str], DeviceInfo]
) -> float:
    """Return the share for the stages in a memory."""
    programs = [
        lower_stage(load, model, device(spec.device), spec)
        for spec in place_parts(load, model.plan)
        if device(spec.device).memory_id == memory_id and caches_experts(load, device(spec.device))
    ]
    whole = sum(map(expert_bytes, programs))
    need = needs_of(load, model, device)[memory_id]
    room_bytes = room_bytes if need.limit_bytes is None else min(room_bytes, need.limit_bytes)
    if not whole or need.total_bytes <= room_bytes:
        return 1.0
    if memory_id == HOST_MEMORY:
        # Here every byte is used, so what the process itself takes counts.
        reading = max(reading_bytes(program, model.checkpoint) for program in programs)
        room_bytes -= ENGINE_BYTES + reading
    left = room_bytes - (need.total_bytes - need.kv_bytes - whole) - _kv_room(load, need, room_bytes)
    return left / whole if _least_bytes(programs) <= left < whole else 1.0


def reading_bytes(program: Program, checkpoint: Checkpoint) -> int:
    """Return the bytes that reading the largest matrix of an expert takes at most, besides its place: the
    mapped pages of the file, a copy if it is transposed or joined, and its numbers if it is converted.
    """
    most = 0
    for weight in (program.weights[index] for index in expert_stacks(program)):
        tensor = find_tensor(weight.ref, checkpoint)
        mapped = tensor.size_bytes // weight.ref.shape[0]
        is_joined = len(tensor.stored) > max(len(tensor.members), 1)
        copy = mapped if weight.ref.is_transposed or is_joined else 0
        numbers = 4 * math.prod(weight.ref.view_shape[1:]) if weight.format != tensor.format else 0
        most = max(most, mapped + copy + numbers)
    return most


def _main_memory_has_room(load: Load, model: OpenModel, info: DeviceInfo, room_bytes: int) -> bool:
    """Whether main memory has room for what a device keeps there, if it is not its own memory."""
    if not may_stream(info):
        return True
    needs = needs_of(load, model, lambda _name: info)
    return HOST_MEMORY not in needs or needs[HOST_MEMORY].total_bytes <= room_bytes


def _kv_room(load: Load, need: MemoryNeed, room_bytes: int) -> int:
    """Return the bytes to leave for KV pools. Unless the user has set their size, they get half of that."""
    if load.kv_memory is not None:
        return need.kv_bytes
    return 2 * min(need.most_kv_bytes, max(need.kv_bytes, room_bytes // KV_PART))


def _least_bytes(programs: list[Program]) -> float:
    """Return the bytes of the experts that one token uses: with less, no expert would be used twice."""
    return sum(one.bytes_read(1) for program in programs for one in expert_reads(program))
