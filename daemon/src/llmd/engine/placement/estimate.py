"""Where a load would run and what memory it would need there, from headers only."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from llmd.api.messages import Load
from llmd.api.plugins import Architecture
from llmd.engine.placement.automatic import with_devices
from llmd.engine.placement.candidates import MachineDevices
from llmd.engine.placement.default_quant import with_default_quant
from llmd.engine.placement.memory_need import MemoryNeed, needs_of
from llmd.models.open_model import open_model


class Estimate(msgspec.Struct, frozen=True):
    """A load with its devices, and what it needs."""

    load: Load
    """It names a device or stages."""
    needs: Mapping[str, MemoryNeed]
    """By `DeviceInfo.memory_id`."""


def estimate(load: Load, architectures: Mapping[str, Architecture], devices: MachineDevices) -> Estimate:
    """Choose the devices of a load, and estimate the memory that it needs there.

    Raises:
        LlmdError: the model cannot be loaded on these devices.
    """
    model = open_model(Path(load.directory), architectures, load.context_len, adapters=load.adapters)
    try:
        placed = with_devices(load, model, devices)
        return Estimate(placed, needs_of(*with_default_quant(placed, model), devices.info))
    finally:
        model.checkpoint.close()
