"""Where the parts of the running models are, and what they take of each device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from llmd.api.decoding import prepared

HOST = "host"
USES = ("weight_bytes", "kv_bytes", "step_bytes")
TWO_DEVICES = "/"
"""Mark of a layer whose parts are on two devices."""


class Stage(msgspec.Struct, frozen=True):
    """A stage of ``GET /llmd/plan``. Fields that an older daemon does not send have their defaults."""

    device: str
    parts: str = ""
    weight_bytes: int = 0
    kv_bytes: int = 0
    step_bytes: int = 0
    memory_id: str = HOST
    first: int = 0
    last: int = 0
    """Layers ``[first, last)``."""
    reason: str = ""
    """Why it is on this device."""
    predicted_ms: float | None = None
    """How long it was expected to take for a step."""
    measured_ms: float | None = None

    @property
    def size_bytes(self) -> int:
        return self.weight_bytes + self.kv_bytes + self.step_bytes


class PlacedModel(msgspec.Struct, frozen=True):
    """A running model."""

    name: str
    stages: tuple[Stage, ...] = ()
    map: tuple[tuple[str, str], ...] = ()
    """Each part, such as ``embed``, ``3`` or ``3.ffn``, with its device; empty from an older daemon."""

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """Each part with its device; an empty device if a layer is on several."""
        if self.map or not self.stages:
            return self.map
        layers = ((str(number), self._device_of(number)) for number in range(self.num_layers))
        return (("embed", self.stages[0].device), *layers, ("head", self.stages[-1].device))

    @property
    def num_layers(self) -> int:
        return max((stage.last for stage in self.stages), default=0)

    @property
    def devices(self) -> tuple[str, ...]:
        """Its devices in the order of its stages."""
        return tuple(dict.fromkeys(stage.device for stage in self.stages))

    @property
    def size_bytes(self) -> int:
        return sum(stage.size_bytes for stage in self.stages)

    def _device_of(self, layer: int) -> str:
        found = {stage.device for stage in self.stages if stage.first <= layer < stage.last}
        return found.pop() if len(found) == 1 else ""


class Use(msgspec.Struct, frozen=True):
    """What is known about a device's memory, in bytes."""

    total: int
    weights: int = 0
    kv: int = 0
    steps: int = 0
    other: int | None = None
    """What others use; None if the daemon does not say."""

    @property
    def ours(self) -> int:
        return self.weights + self.kv + self.steps

    @property
    def free(self) -> int:
        """What is left; an upper bound if `other` is not known."""
        return max(self.total - self.ours - (self.other or 0), 0)


def placed_models(plan: Mapping[str, Any]) -> list[PlacedModel]:
    """Return the models of ``GET /llmd/plan``."""
    return msgspec.convert(list(plan.get("models", ())), prepared(list[PlacedModel]), strict=False)


def use_of(
    device: Mapping[str, Any], models: Sequence[PlacedModel], memories: Sequence[Mapping[str, Any]] = ()
) -> Use | None:
    """Return how the memory of a device is used; None if it has none that is known.

    ``memories`` are those of ``GET /llmd/devices``. An older daemon has none: then only what llmd's models
    have on this very device is known.
    """
    for memory in memories:
        if device.get("ok") and memory.get("memory_id") == device.get("memory_id"):
            weights, kv, steps = (int(memory[use]) for use in USES)
            return Use(int(memory["total_bytes"]), weights, kv, steps, memory["other_bytes"])
    if not device.get("memory_bytes"):
        return None
    own = [stage for model in models for stage in model.stages if stage.device == device.get("name")]
    weights, kv, steps = (sum(getattr(stage, use) for stage in own) for use in USES)
    return Use(int(device["memory_bytes"]), weights, kv, steps)


def letters(devices: Sequence[str]) -> dict[str, str]:
    """Return a letter for each device: its own first letter, or else the next one that is not taken."""
    found: dict[str, str] = {}
    for device in devices:
        own = [char.upper() for char in device if char.isalpha()]
        free = [char for char in (*own, *"ABCDEFGHIJKLMNOPQRSTUVWXYZ") if char not in found.values()]
        found[device] = free[0] if free else "?"
    return found
