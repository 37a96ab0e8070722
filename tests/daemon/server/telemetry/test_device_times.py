"""Times of the devices of a divided model."""

from __future__ import annotations

import pytest
from msgspec import structs

from llmd.api.messages import Loaded, StageReport
from llmd.engine.placement.prediction import Prediction
from llmd.server.telemetry.device_facts import DeviceFacts
from llmd.server.telemetry.device_times import DeviceTime, device_times
from llmd.server.telemetry.model_facts import ModelFacts, SingleSteps

STAGES = tuple(
    StageReport(name, "layers", 1, kv_bytes, 1) for name, kv_bytes in (("a", 30), ("b", 60), ("a", 10))
)
LOADED = Loaded("llama", 10, 512, 512, 1, ("f32",), STAGES, kv_tokens=2048, load_s=0.1)
FACTS = ModelFacts(
    name="m",
    loaded=LOADED,
    devices=DeviceFacts(kv_bytes_per_s={"a": 1e3, "b": 1e4}),
)
PREDICTION = Prediction((0.1, 0.2, 0.3))
STEPS = SingleSteps(20, 1.0, 1000.0, (0.5, 0.25, 0.125))


def test_the_stages_of_a_device_count_together_and_read_their_share_of_keys_and_values() -> None:
    first, second = device_times(FACTS, PREDICTION, STEPS)
    assert (first.device, first.took_s) == ("a", 0.625)
    assert first.expected_s == pytest.approx(0.4 + 0.4)
    assert second == DeviceTime("b", 0.25, 0.2 + 0.06)


def test_devices_without_rates_and_unknown_times_are_left_out() -> None:
    facts = structs.replace(FACTS, devices=DeviceFacts(kv_bytes_per_s={"b": 1e4}))
    assert [one.device for one in device_times(facts, PREDICTION, STEPS)] == ["b"]
    assert device_times(FACTS, PREDICTION, SingleSteps(20, 1.0, 1000.0)) == []
    assert device_times(FACTS, Prediction((0.1, 0.2)), STEPS) == []
    assert device_times(ModelFacts(name="m"), PREDICTION, STEPS) == []


def test_a_model_without_keys_and_values_reads_none() -> None:
    bare = tuple(structs.replace(stage, kv_bytes=0) for stage in STAGES)
    facts = structs.replace(FACTS, loaded=structs.replace(LOADED, stages=bare))
    assert [one.expected_s for one in device_times(facts, PREDICTION, STEPS)] == [0.4, 0.2]
