"""Attention to chosen positions on Vulkan has the bits of ordinary attention if all positions are chosen."""

from __future__ import annotations

import numpy as np
import pytest

from llmd.testing.conformance import cases_for
from llmd.testing.runs import run
from llmd.testing.workload import all_at_once, ragged
from llmd_backend_vulkan.device import VulkanDevice
from tests.conformance.test_chosen_positions import choosing, without_choice

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize(
    "name",
    ["indexer/odd-f16", pytest.param("indexer/long-partitions-f32", marks=pytest.mark.exhaustive)],
)
def test_all_positions_give_the_bits_of_ordinary_attention(device: VulkanDevice, name: str) -> None:
    case = next(case for case in cases_for(device.info) if case.name == name)
    whole = choosing(case, 1100)
    for schedule in (all_at_once(whole), ragged(whole)):
        chosen, plain = (run(device, one, schedule).rows for one in (whole, without_choice(whole)))
        assert chosen.keys() == plain.keys()
        assert all(np.array_equal(chosen[place], plain[place]) for place in plain)
    limited = run(device, case, ragged(case)).rows
    assert any(not np.array_equal(limited[place], plain[place]) for place in plain)
