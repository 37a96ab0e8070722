"""Where the parts of the running models are, and what they take of each device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

HOST = "host"
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

    def layer(self, number: int) -> str | None:
        """Return the device of a layer; None if its parts are on several."""
        found = {stage.device for stage in self.stages if stage.first <= number < stage.last}
        return found.pop() if len(found) == 1 else None


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
    return msgspec.convert(list(plan.get("models", ())), list[PlacedModel], strict=False)


def use_of(device: Mapping[str, Any], models: Sequence[PlacedModel]) -> Use | None:
    """Return how the memory of a device is used; None if it has none that is known."""
    total = device.get("memory_bytes")
    if not total:
        return None
    stages = list(_stages_in(device, models))
    weights, kv, steps = (
        sum(getattr(stage, name) for stage in stages) for name in ("weight_bytes", "kv_bytes", "step_bytes")
    )
    free = device.get("free_bytes")
    other = None if free is None else max(int(total) - int(free) - weights - kv - steps, 0)
    return Use(int(total), weights, kv, steps, other)


def letters(devices: Sequence[str]) -> dict[str, str]:
    """Return a letter for each device: its own first letter, or else the next one that is not taken."""
    found: dict[str, str] = {}
    for device in devices:
        own = [char.upper() for char in device if char.isalpha()]
        free = [char for char in (*own, *"ABCDEFGHIJKLMNOPQRSTUVWXYZ") if char not in found.values()]
        found[device] = free[0] if free else "?"
    return found


def _stages_in(device: Mapping[str, Any], models: Sequence[PlacedModel]) -> Iterator[Stage]:
    """Yield the stages in the memory of a device: those of devices that share it too, if that is known."""
    name, memory_id = device.get("name"), device.get("memory_id")
    for model in models:
        for stage in model.stages:
            if stage.device == name or (memory_id is not None and stage.memory_id == memory_id):
                yield stage
