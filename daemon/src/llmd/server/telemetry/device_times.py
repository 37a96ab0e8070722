"""Seconds that each device of a divided model works on a step, predicted and measured. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from llmd.engine.placement.prediction import Prediction
from llmd.server.telemetry.model_facts import ModelFacts, SingleSteps


class DeviceTime(Struct, frozen=True):
    """The stages of one device in a step of one sequence."""

    device: str
    took_s: float
    """Mean seconds that it has worked on such a step."""
    expected_s: float
    """Predicted seconds, with the keys and values that these steps have read."""


def device_times(facts: ModelFacts, prediction: Prediction, steps: SingleSteps) -> Sequence[DeviceTime]:
    """Return the times of each device whose rates are known; none if those of stages are not known.

    Keys and values are divided among the stages as their pools are.
    """
    stages = facts.loaded.stages if facts.loaded else ()
    if not len(stages) == len(steps.stages_s) == len(prediction.stages_s):
        return []
    pools = sum(stage.kv_bytes for stage in stages) or 1
    found = []
    for device in dict.fromkeys(stage.device for stage in stages):
        rate = facts.devices.kv_bytes_per_s.get(device, 0.0)
        own = [number for number, stage in enumerate(stages) if stage.device == device]
        if rate:
            read_bytes = steps.kv_bytes * sum(stages[number].kv_bytes for number in own) / pools
            expected_s = sum(prediction.stages_s[number] for number in own) + read_bytes / rate
            found.append(DeviceTime(device, sum(steps.stages_s[number] for number in own), expected_s))
    return found
