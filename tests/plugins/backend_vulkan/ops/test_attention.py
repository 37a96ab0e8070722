"""Causal attention in each KV dtype: grouped, windowed, capped, over one and over many spans."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from llmd.api import DeviceOptions
from llmd.models.lowering import lower
from llmd.testing.conformance import cases_for
from llmd.testing.plans import TinyModel
from llmd.testing.runs import LoadedWorkload
from llmd.testing.workload import all_at_once
from llmd_backend_vulkan.commands import MOST_WORK
from llmd_backend_vulkan.device import VulkanDevice, describe
from llmd_backend_vulkan.ops import attention as attending
from llmd_backend_vulkan.ops.attention import scratch_words, spans_of
from llmd_backend_vulkan.vulkan import PhysicalDevice

NAMES = (
    "attention/mha-f32",
    "attention/gqa-f16",
    "attention/mqa-bf16",
    "attention/window-int8",
    "attention/window-1-f16",
    "attention/wide-head-int8",
    "attention/long-f16",
    "attention/mqa-int4",
    "attention/wide-head-int4",
    "attention/long-int4",
)


@pytest.mark.parametrize("name", NAMES)
def test_results_are_those_of_the_reference_in_any_batch(check: Callable[[str], None], name: str) -> None:
    check(name)


def test_spans_depend_on_what_a_row_sees() -> None:
    positions = np.array([0, 127, 128, 2047, 2048, 4096, 131071], np.int32)
    assert spans_of(positions, None).tolist() == [1, 1, 2, 16, 9, 9, 16]
    assert spans_of(positions, 100).tolist() == [1] * 7
    assert spans_of(positions, 300).tolist() == [1, 1, 2, 3, 3, 3, 3]


def test_scratch_has_room_for_the_bucket_of_spans() -> None:
    plan = TinyModel(context_len=1056).plan()
    program = lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32", activations="f32")
    assert scratch_words(program, 4) == 4 * 16 * 4 * (12 + 2)
    assert scratch_words(program, 400) == 16 * 16 * 4 * (12 + 2)


def test_attention_of_many_rows_is_cut_into_submissions(
    physical: PhysicalDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = next(case for case in cases_for(describe(physical)) if case.name == "attention/gqa-f16")
    rows = []
    for most in (MOST_WORK, 256.0 * 4 * 12 * 2 * 7):
        monkeypatch.setattr(attending, "MOST_WORK", most)
        with LoadedWorkload(VulkanDevice(physical, DeviceOptions()), case) as loaded:
            rows.append(loaded.run(all_at_once(case)).rows)
    assert all(np.array_equal(rows[0][place], rows[1][place]) for place in rows[0])
