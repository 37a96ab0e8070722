"""What `llmd show` says of the memory that loading a model would take, and whether it fits here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from llmd.api.byte_size import format_bytes
from llmd.api.device import HOST_MEMORY
from llmd.api.errors import LlmdError
from llmd.api.machine import available_bytes

if TYPE_CHECKING:
    from llmd.config import Settings
    from llmd.engine.placement.memory_need import MemoryNeed


class MemoryFit(msgspec.Struct, frozen=True):
    """What a model would take of one memory, in bytes. Nothing is loaded to find this out."""

    devices: tuple[str, ...]
    """The devices that would compute; none in main memory that only holds weights for others."""
    weight_bytes: int
    """Weights in the formats that the devices use."""
    step_bytes: int
    """Step buffers."""
    least_kv_bytes: int
    """The smallest KV cache with which the model is loaded."""
    most_kv_bytes: int
    """A KV cache for all slots at the full context; more is never taken."""
    slots: int
    free_bytes: int
    """What is free now, or allowed by `max_memory`."""
    absent_bytes: int = 0
    """Experts for which there is no room: steps that use them read them from the model's files."""

    @property
    def least_bytes(self) -> int:
        return self.weight_bytes + self.step_bytes + self.least_kv_bytes

    @property
    def most_bytes(self) -> int:
        return self.weight_bytes + self.step_bytes + self.most_kv_bytes

    @property
    def fits(self) -> bool:
        """Whether the model can be loaded without unloading another one."""
        return self.least_bytes <= self.free_bytes


def memory_fits(directory: Path, name: str, settings: Settings) -> list[MemoryFit]:
    """Return what the model would take of each memory with its settings. ``name`` is that of its settings.

    Raises:
        LlmdError: it cannot be loaded on the devices of the settings.
    """
    from llmd.cli.composition import build_benchmarks, build_cache, build_host
    from llmd.engine.placement.candidates import MachineDevices, free_room
    from llmd.engine.placement.estimate import estimate
    from llmd.server.models.load_message import load_message_of

    cache, config = build_cache(), settings.of_model(name)
    host, limit = build_host(cache), config.server.models.max_memory
    devices = MachineDevices(host, build_benchmarks(cache), free_room(limit))
    needs = estimate(load_message_of(name, directory, settings), host.architectures(), devices).needs
    return [_fit(memory_id, need, config.engine.slots, limit) for memory_id, need in needs.items()]


def _fit(memory_id: str, need: MemoryNeed, slots: int, limit: int | None) -> MemoryFit:
    on_host = memory_id == HOST_MEMORY
    free = available_bytes() if on_host else need.memory_bytes
    limits = [free, *(one for one in (limit if on_host else None, need.limit_bytes) if one is not None)]
    return MemoryFit(
        need.devices,
        need.weight_bytes,
        need.step_bytes,
        need.kv_bytes,
        need.most_kv_bytes,
        slots,
        min(limits),
        need.absent_bytes,
    )


def fit_lines(directory: Path, name: str, settings: Settings) -> list[list[str]]:
    """Return titles and values for each memory, or why nothing is known."""
    try:
        fits = memory_fits(directory, name, settings)
    except LlmdError as error:
        return [["to load it", f"not known: {error.message}"]]
    return [line for fit in fits for line in _lines(fit)]


def fit_fields(directory: Path, name: str, settings: Settings) -> list[Mapping[str, Any]]:
    """Return the same for programs; nothing if the model cannot be loaded."""
    try:
        fits = memory_fits(directory, name, settings)
    except LlmdError:
        return []
    return [{**msgspec.to_builtins(fit), "fits": fit.fits} for fit in fits]


def _lines(fit: MemoryFit) -> list[list[str]]:
    kv = format_bytes(fit.most_kv_bytes)
    parts = [
        f"{format_bytes(fit.weight_bytes)} of weights",
        f"{format_bytes(fit.step_bytes)} of step buffers",
    ]
    if fit.least_kv_bytes < fit.most_kv_bytes:
        parts.append(f"{format_bytes(fit.least_kv_bytes)} to {kv} of KV cache")
    elif fit.most_kv_bytes:
        parts.append(f"{kv} of KV cache")
    needs = " + ".join(parts)
    slots = f" (most: {fit.slots} sequences at the full context)" if fit.most_kv_bytes else ""
    return [
        ["to load it", f"{needs}{slots} on {' and '.join(fit.devices) or 'main memory'}"],
        ["fits here", _verdict(fit)],
    ]


def _verdict(fit: MemoryFit) -> str:
    free = f"{format_bytes(fit.free_bytes)} free"
    if not fit.fits:
        return f"no: at least {format_bytes(fit.least_bytes)}, {free}; quantise it with --quant, or use a smaller model"
    if fit.absent_bytes:
        absent = format_bytes(fit.absent_bytes)
        return f"yes, without {absent} of experts, which are read when a text needs them, {free}"
    if fit.most_bytes > fit.free_bytes:
        return f"yes, with a smaller KV cache: all of it takes {format_bytes(fit.most_bytes)}, {free}"
    return f"yes: at most {format_bytes(fit.most_bytes)}, {free}"
