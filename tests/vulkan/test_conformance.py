"""The conformance suite on Mesa's lavapipe, with and without our additions to Kompute."""

from __future__ import annotations

import pytest

from llmd.testing.conformance import cases_for, check_case, unclaimed
from llmd_backend_vulkan.device import VulkanDevice

FEW = ("program/adapters", "program/draws", "program/hybrid", "program/taps", "program/encoder-score")
"""Whole models that have each kind of recording: tests of ops, streams and goldens reach the rest."""


def problems(device: VulkanDevice, names: tuple[str, ...] | None = None) -> list[str]:
    """Run cases, by default all, and return what failed."""
    cases = [case for case in cases_for(device.info) if names is None or case.name in names]
    assert len(cases) >= len(names or (1,) * 250)
    results = [result for case in cases for result in check_case(device, case)]
    return [f"{result.name}: {result.problem}" for result in results if result.problem]


@pytest.mark.timeout(300)
def test_whole_models_conform(device: VulkanDevice) -> None:
    assert problems(device, FEW) == []


@pytest.mark.timeout(300)
def test_whole_models_conform_without_additions(plain_device: VulkanDevice) -> None:
    assert not plain_device.runtime.has_additions
    assert problems(plain_device, ("program/taps",)) == []


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
def test_everything_that_is_claimed_conforms(device: VulkanDevice) -> None:
    assert problems(device) == []


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
def test_everything_conforms_without_additions(plain_device: VulkanDevice) -> None:
    assert problems(plain_device) == []


def test_everything_is_claimed(device: VulkanDevice) -> None:
    assert unclaimed(device.info) == {}
