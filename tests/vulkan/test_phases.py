"""What runs between two barriers may run in any order: results do not change if it runs backwards."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from llmd.testing.conformance import cases_for, check_case
from llmd_backend_vulkan.commands import Segment
from llmd_backend_vulkan.device import VulkanDevice
from llmd_backend_vulkan.runtime import Recording

FEW = (
    "adapt/value-is-kept",
    "experts/limit",
    "gated_delta/grouped",
    "generalized_delta/mixed",
    "head_linear/f16-wide",
    "program/hybrid",
    "program/encoder-score",
)
MORE = (
    "merge_attention/chosen-f32",
    "mix_streams/4-20",
    "program/full-f32-kv-int8",
    "program/full-f32-kv-int4",
    "program/streamed",
    "program/experts-f32",
)


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "names", [FEW, pytest.param(MORE, marks=pytest.mark.exhaustive)], ids=["few", "more"]
)
def test_dispatches_of_a_phase_are_independent(
    device: VulkanDevice, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    record, widest = device.runtime.record_segments, 0

    def backwards(segments: Sequence[Segment], *, keeps_times: bool = False) -> Recording:
        nonlocal widest
        phases = [[list(reversed(phase)) for phase in segment.phases] for segment in segments]
        widest = max([widest, *(len(phase) for listed in phases for phase in listed)])
        turned = [replace(one, phases=listed) for one, listed in zip(segments, phases, strict=True)]
        return record(turned, keeps_times=keeps_times)

    monkeypatch.setattr(device.runtime, "record_segments", backwards)
    results = [
        result for case in cases_for(device.info) if case.name in names for result in check_case(device, case)
    ]
    assert widest > 2
    assert [result for result in results if result.problem] == []
