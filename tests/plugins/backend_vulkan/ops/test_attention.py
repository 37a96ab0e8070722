"""Causal attention in each KV dtype: grouped, windowed, capped, over one and over many spans."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from msgspec import structs

from llmd.api import HIDDEN, Attention, DeviceOptions, HostHidden, KVGroup, Linear, Step, TensorRef
from llmd.models.lowering import lower
from llmd.profiling.plans import attention_plan
from llmd.profiling.timed_model import TimedModel
from llmd.testing.conformance import cases_for, check_case
from llmd.testing.plans import TinyModel
from llmd.testing.runs import LoadedWorkload
from llmd.testing.workload import all_at_once
from llmd_backend_vulkan.commands import MOST_WORK
from llmd_backend_vulkan.device import VulkanDevice, describe
from llmd_backend_vulkan.ops import attention as attending
from llmd_backend_vulkan.ops.attention import SPLIT_ROWS, scratch_words, shared_rows, spans_of
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
    "attention/sinks-f16",
    "attention/long-sinks-f16",
    "attention/sinks-window-int8",
    "attention/shared-int8",
)


@pytest.mark.parametrize("name", NAMES)
def test_results_are_those_of_the_reference_in_any_batch(check: Callable[[str], None], name: str) -> None:
    check(name)


def test_spans_depend_on_what_a_row_sees() -> None:
    positions = np.array([0, 127, 128, 2047, 2048, 4096, 131071], np.int32)
    assert spans_of(positions, None).tolist() == [1, 1, 2, 16, 9, 9, 16]
    assert spans_of(positions, 100).tolist() == [1] * 7
    assert spans_of(positions, 300).tolist() == [1, 1, 2, 3, 3, 3, 3]
    assert spans_of(np.array([-1, 0], np.int32), None).tolist() == [0, 1]


def test_scratch_has_room_for_the_bucket_of_spans() -> None:
    plan = TinyModel(context_len=1056).plan()
    program = lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32", activations="f32")
    assert scratch_words(program, 4) == 4 * 16 * 4 * (12 + 2)
    assert scratch_words(program, 400) == 16 * 16 * 4 * (12 + 2)


@pytest.mark.parametrize(
    "name",
    [
        "attention/mha-bf16",
        "attention/gqa-f32",
        "attention/long-f16",
        "attention/mqa-int4",
        "attention/wide-head-int8",
        "attention/sinks-f16",
        pytest.param("merge_attention/few-f16", marks=pytest.mark.exhaustive),
    ],
)
def test_rows_that_share_keys_have_the_bits_of_rows_alone(
    physical: PhysicalDevice, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    case = next(case for case in cases_for(describe(physical)) if case.name == name)
    rows = []
    for shared in (attending.shared_rows, lambda _op: 0):
        monkeypatch.setattr(attending, "shared_rows", shared)
        with LoadedWorkload(VulkanDevice(physical, DeviceOptions()), case) as loaded:
            rows.append(loaded.run(all_at_once(case)).rows)
    assert len(rows[0]) > SPLIT_ROWS
    assert all(np.array_equal(rows[0][place], rows[1][place]) for place in rows[0])


@pytest.mark.exhaustive
@pytest.mark.parametrize("position", [2030, 3990])
def test_rows_share_long_spans(device: VulkanDevice, monkeypatch: pytest.MonkeyPatch, position: int) -> None:
    """Beyond 2048 positions, spans are longer than 128; rows of one step may have two lengths."""
    x = np.random.default_rng(2).standard_normal((64, 64), np.float32)
    step = Step(
        token_ids=np.zeros(64, np.int32),
        positions=np.arange(position, position + 64, dtype=np.int32),
        row_offsets=np.array([0, 64], np.int32),
        block_tables=(np.arange(256, dtype=np.int32)[None],),
        copies=np.zeros((0, 3), np.int32),
    )
    found = []
    for shared in (attending.shared_rows, lambda _op: 0):
        monkeypatch.setattr(attending, "shared_rows", shared)
        with TimedModel(device, attention_plan(64, 4, 2, 1, 4096), "f16", 64, parts=(1, 2)) as model:
            model.fill(64, 4096)
            ticket = model._stage.submit(step, HostHidden(x), None)
            found.append(model._stage.hidden(ticket).host())
            model._stage.release(ticket)
    assert np.isfinite(found[0]).all()
    assert np.array_equal(found[0], found[1])


def test_as_many_rows_share_keys_as_fit_in_shared_memory() -> None:
    def shared(heads: int, kv_heads: int, head_dim: int) -> int:
        return shared_rows(Attention("q", "k", "v", "out", 0, 0, heads, kv_heads, head_dim, scale=1.0))

    assert [shared(8, 8, 64), shared(8, 4, 128), shared(32, 8, 128), shared(8, 1, 64)] == [16, 8, 4, 4]
    assert [shared(8, 8, 256), shared(32, 8, 160)] == [8, 2]
    assert [shared(4, 4, 512), shared(16, 1, 512), shared(16, 1, 576)] == [4, 1, 0]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["wide-head-f16", "wide-head-int8", "wide-head-int4"])
def test_heads_may_have_as_many_elements_as_those_of_gemma(device: VulkanDevice, name: str) -> None:
    """Queries of 512 elements, in place of the case's 40."""
    case = next(case for case in cases_for(device.info) if case.name == f"attention/{name}")
    before, tested, after = case.plan.parts
    (_, of) = tested.ops
    assert isinstance(of, Attention)
    width = case.plan.hidden_size
    q, k, v = (TensorRef(n, (heads * 512, width)) for n, heads in (("q", 4), ("k", 1), ("v", 1)))
    ops = (
        Linear(HIDDEN, ("q", "k", "v"), (q, k, v), (None,) * 3),
        structs.replace(of, q="q", out="y", kv_heads=1, head_dim=512, value_dim=512),
        Linear("y", (HIDDEN,), (TensorRef("back", (width, 4 * 512)),), (None,)),
    )
    parts = (before, structs.replace(tested, ops=ops), after)
    plan = structs.replace(case.plan, parts=parts, groups=(KVGroup(0, None, 1, 512, (0,)),))
    results = list(check_case(device, structs.replace(case, plan=plan)))
    assert [result for result in results if result.problem] == []


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
