"""Devices that may get the parts of a tiny model, each with a memory of its own."""

from __future__ import annotations

from msgspec import structs

from llmd.api.device import DeviceProfile
from llmd.engine.placement.candidates import Candidate
from llmd.testing.null_device import NullDevice

QUICK = DeviceProfile(
    read_bytes_per_s=4e9,
    decode_bytes_per_s={"f32": 3e9, "q8": 2e9},
    prefill_flops_per_s={"f32": {16: 4e10, 128: 9e10}, "q8": {16: 3e10, 128: 8e10}},
    kv_bytes_per_s=2e9,
    attention_flops_per_s=5e10,
    step_s=2e-5,
    part_s=1e-6,
    copy_bytes_per_s=2e9,
)
SLOW = DeviceProfile(
    read_bytes_per_s=1e9,
    decode_bytes_per_s={"f32": 8e8, "q8": 6e8},
    prefill_flops_per_s={"f32": {16: 1e10, 128: 2e10}, "q8": {16: 8e9, 128: 1.5e10}},
    kv_bytes_per_s=5e8,
    attention_flops_per_s=1e10,
    step_s=1e-5,
    part_s=2e-6,
    copy_bytes_per_s=1e9,
)


def candidates(*profiles: DeviceProfile, free_bytes: int = 1 << 30) -> list[Candidate]:
    """Return devices ``d0``, ``d1`` and so on with these rates."""
    info = NullDevice(lambda: 0.0).info
    return [
        Candidate(structs.replace(info, name=f"d{index}", memory_id=f"m{index}"), profile, free_bytes)
        for index, profile in enumerate(profiles)
    ]
