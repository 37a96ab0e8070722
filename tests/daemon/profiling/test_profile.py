from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from llmd.api.device import HOST_MEMORY, DeviceInfo, DeviceProfile
from llmd.api.errors import DeviceError, PluginError
from llmd.builtin.reference.device import ReferenceDevice
from llmd.profiling import profile, time_shares, timed_model
from llmd.profiling.profile import full_profile, measured_formats, short_profile
from llmd.profiling.time_shares import TimeShares
from llmd.testing.null_device import NullDevice, NullWeights
from tests.daemon.profiling.simulated import Clock, device_at

FAST = DeviceProfile(
    read_bytes_per_s=1e9,
    decode_bytes_per_s={"bf16": 9e8, "q8": 8e8, "q4": 7e8},
    prefill_flops_per_s={
        "bf16": {16: 1.4e10, 64: 4e10, 256: 6e10, 512: 5e10},
        "q8": {16: 2e10, 64: 5e10, 256: 7e10, 512: 8e10},
        "q4": {16: 3e10, 64: 7e10, 256: 8e10, 512: 9e10},
    },
    kv_bytes_per_s=5e8,
    attention_flops_per_s=4e10,
    step_s=1e-3,
    part_s=2e-4,
    copy_bytes_per_s=2e8,
    stream_bytes_per_s=3e8,
)
"""What the simulated device takes."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (timed_model, time_shares):
        monkeypatch.setattr(module, "time", clock)
    return clock


def replace_info(device: NullDevice, **changes: Any) -> DeviceInfo:
    return structs.replace(device.info, **changes)


def test_rates_of_a_simulated_device_are_found(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "SLOW_BYTES_PER_S", 1e8)
    monkeypatch.setattr(profile, "LONGEST_STEP_S", 10.0)
    found = full_profile(device_at(clock, FAST), 0.0)
    assert found.read_bytes_per_s == 1e9
    assert found.decode_bytes_per_s == pytest.approx(FAST.decode_bytes_per_s, rel=0.05)
    assert found.prefill_flops_per_s.keys() == FAST.prefill_flops_per_s.keys()
    for name, rates in FAST.prefill_flops_per_s.items():
        assert found.prefill_flops_per_s[name] == pytest.approx(rates, rel=0.05)
    assert found.kv_bytes_per_s == pytest.approx(FAST.kv_bytes_per_s, rel=0.05)
    assert found.attention_flops_per_s == pytest.approx(FAST.attention_flops_per_s, rel=0.05)
    assert found.step_s == pytest.approx(FAST.step_s, rel=0.1)
    assert found.part_s == pytest.approx(FAST.part_s, rel=0.15)  # a small layer is read, too
    assert found.copy_bytes_per_s == pytest.approx(FAST.copy_bytes_per_s, rel=0.15)
    assert found.stream_bytes_per_s == pytest.approx(FAST.stream_bytes_per_s, rel=0.05)


def test_a_device_without_streams_or_in_main_memory_has_no_rate_of_them(clock: Clock) -> None:
    device = device_at(clock, FAST)
    device.info = replace_info(device, features=())
    assert full_profile(device, 0.0).stream_bytes_per_s == 0
    device = device_at(clock, FAST)
    device.info = replace_info(device, memory_id=HOST_MEMORY)
    assert full_profile(device, 0.0).stream_bytes_per_s == 0


def test_no_weights_arrive_faster_than_memory_is_read(clock: Clock) -> None:
    device = device_at(clock, FAST, scale=0.1)
    assert set(full_profile(device, 0.0).decode_bytes_per_s.values()) == {1e9}


def test_a_slow_device_is_measured_with_fewer_rows(clock: Clock) -> None:
    found = full_profile(device_at(clock, FAST), 0.0)
    assert {tuple(rates) for rates in found.prefill_flops_per_s.values()} == {(64,)}


def test_a_fast_device_is_measured_in_the_time_there_is(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loading takes a third of it."""
    load, speed = NullDevice.load, 20.0
    loads = 0

    def loading(device: NullDevice, *arguments: Any) -> NullWeights:
        nonlocal loads
        loads += 1
        clock.pause(0.1)
        return load(device, *arguments)

    monkeypatch.setattr(NullDevice, "load", loading)
    full_profile(device_at(clock, FAST, scale=1 / speed), 3.0)
    assert loads == 12
    assert 2.9 < clock.now_s < 3.3


@pytest.mark.parametrize(("rate", "sizes"), [(4e9, profile.LARGE), (1e9, profile.SMALL)])
def test_slow_attention_is_measured_with_a_shorter_context(
    clock: Clock, rate: float, sizes: profile.Sizes
) -> None:
    """At the end of a long context, a chunk would take several seconds."""
    slow = structs.replace(FAST, attention_flops_per_s=rate)
    _, found = profile.attention_rates(device_at(clock, slow), sizes, TimeShares(0.0, 5))
    assert found == pytest.approx(rate, rel=0.05)
    assert clock.now_s < 1.5


@pytest.mark.parametrize(
    ("first_s", "second_s", "context"),
    [(0.01, 0.01, 4096), (0.01, 0.02, 1280), (0.2, 0.3, 256), (0.01, 0.0, 4096)],
    ids=["as fast", "slower", "too slow", "faster, by chance"],
)
def test_the_last_chunk_of_a_context_does_not_take_long(
    first_s: float, second_s: float, context: int
) -> None:
    assert profile.suitable_context(profile.LARGE, first_s, second_s) == context


def test_a_short_measurement_shows_drift_of_each_rate(clock: Clock) -> None:
    before = short_profile(device_at(clock, FAST), 0.0)
    after = short_profile(device_at(clock, FAST, scale=2.0), 0.0)
    assert before.decode_bytes_per_s.keys() == {"q4"}
    assert after.decode_bytes_per_s["q4"] == pytest.approx(before.decode_bytes_per_s["q4"] / 2)
    assert after.fastest_prefill == pytest.approx(before.fastest_prefill / 2)


def test_all_memory_is_free_again(clock: Clock) -> None:
    device = device_at(clock, FAST)
    full_profile(device, 0.0)
    assert device.held_bytes == 0


def test_real_steps_are_timed() -> None:
    """The reference is slow, and each of its rates is found by the clock of this machine."""
    found = full_profile(ReferenceDevice(), 0.0)
    assert found.decode_bytes_per_s.keys() == {"bf16", "q8", "q4"}
    assert min(found.decode_bytes_per_s.values()) > 0
    assert min(found.kv_bytes_per_s, found.attention_flops_per_s, found.copy_bytes_per_s) > 0
    assert found.fastest_prefill > 0


def test_formats_that_a_device_lacks_are_not_measured(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    device = NullDevice(clock)
    device.info = replace_info(device, formats=("f32", "q4"))
    assert measured_formats(device) == ["f32", "q4"]


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf"), "fast", None])
def test_a_read_rate_that_is_none_is_refused(clock: Clock, rate: object) -> None:
    device = NullDevice(clock)
    device.read_rate = lambda _budget_s: rate  # type: ignore[method-assign,assignment,return-value]
    with pytest.raises(
        PluginError, match=r"its read_rate returned .*, which is no number of bytes per second"
    ):
        full_profile(device, 0.0)


def test_a_device_that_lacks_an_op_is_not_measured(clock: Clock) -> None:
    device = NullDevice(clock)
    device.info = replace_info(device, ops=("embed", "norm", "linear"))
    with pytest.raises(DeviceError, match="it cannot run a model to be measured: op add"):
        full_profile(device, 0.0)
