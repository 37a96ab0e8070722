"""Vectors that stand for several tokens, of each type of stored numbers, with and without overlap."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from llmd.testing.compressed_cases import _compress, _Sizes
from llmd.testing.conformance import check_case
from llmd_backend_vulkan.device import VulkanDevice

NAMES = ("compress/overlap-f32", "compress/apart-f16", "compress/overlap-bf16")
SLOW = ("compress/apart-f32", "compress/overlap-f16", "compress/apart-bf16")


@pytest.mark.parametrize(
    "name", [*NAMES, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in SLOW)]
)
def test_vectors_are_those_of_the_reference_in_any_batch(check: Callable[[str], None], name: str) -> None:
    check(name)


@pytest.mark.exhaustive
def test_vectors_may_be_as_wide_as_those_of_deepseek_v4(device: VulkanDevice) -> None:
    case = _compress("wide", _Sizes(4, overlap=True, heads=1, dim=512, window=8), "f16")
    assert [group.key_dim for group in case.plan.groups] == [2048]
    assert [result for result in check_case(device, case) if result.problem] == []
