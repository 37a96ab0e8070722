"""What runs between two barriers may run in any order: results do not change if it runs backwards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from llmd.testing.conformance import cases_for, check_case
from llmd_backend_vulkan.device import VulkanDevice
from llmd_backend_vulkan.runtime import Dispatch, Recording

CASES = (
    "program/full-f32-kv-int8",
    "program/hybrid",
    "program/encoder-score",
)


@pytest.mark.timeout(120)
def test_dispatches_of_a_phase_are_independent(device: VulkanDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    record, widest = device.runtime.record, 0

    def backwards(phases: Iterable[Sequence[Dispatch]]) -> Recording:
        nonlocal widest
        listed = [list(reversed(phase)) for phase in phases]
        widest = max([widest, *map(len, listed)])
        return record(listed)

    monkeypatch.setattr(device.runtime, "record", backwards)
    results = [
        result for case in cases_for(device.info) if case.name in CASES for result in check_case(device, case)
    ]
    assert widest > 2
    assert [result for result in results if result.problem] == []
