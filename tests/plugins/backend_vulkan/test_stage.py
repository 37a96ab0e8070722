"""Steps on the device: several in flight, fed from each other, with copies of blocks; and what is refused."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
import pytest

from llmd.api import (
    DeviceError,
    DeviceLostError,
    DeviceOptions,
    Program,
    Selection,
    StageLimits,
    Step,
    Ticket,
)
from llmd.models.lowering import lower
from llmd.testing.plans import TinyModel
from llmd.testing.sources import RandomSource
from llmd_backend_vulkan.device import VulkanDevice
from llmd_backend_vulkan.runtime import Recording
from llmd_backend_vulkan.stage import VulkanStage
from llmd_backend_vulkan.vulkan import PhysicalDevice

LIMITS = StageLimits(max_rows=70, max_sequences=4, max_outputs=4, kv_dtype="f32")
BLOCKS = {0: 9, 1: 9}


@pytest.fixture(params=["additions", "plain"])
def stage(
    request: pytest.FixtureRequest, device: VulkanDevice, plain_device: VulkanDevice
) -> Iterator[VulkanStage]:
    """The small model on the device, with and without our additions to Kompute."""
    used = device if request.param == "additions" else plain_device
    weights = used.load(small_model(), RandomSource(), lambda _done, _total: None)
    opened = weights.stage(BLOCKS, LIMITS)
    yield opened
    opened.close()
    opened.close()
    weights.close()


def small_model(streamed: tuple[int, ...] = ()) -> Program:
    """Return the small model."""
    plan = TinyModel().plan()
    return lower(
        plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32", activations="f32", streamed=streamed
    )


def step_of(tokens: list[int], first: int, blocks: list[int], feed: Ticket | None = None) -> Step:
    """Return a step of one sequence."""
    table = np.array([blocks], np.int32)
    return Step(
        token_ids=np.array(tokens, np.int32),
        positions=np.arange(first, first + len(tokens), dtype=np.int32),
        row_offsets=np.array([0, len(tokens)], np.int32),
        block_tables=(table, table),
        copies=np.zeros((0, 3), np.int32),
        feed=feed,
    )


def last_row(count: int) -> Selection:
    """Return a selection of the last of some rows."""
    one = np.ones(1, np.float32)
    return Selection(
        rows=np.array([count - 1], np.int32),
        edit_offsets=np.zeros(2, np.int32),
        edit_ids=np.zeros(0, np.int32),
        edit_factors=one[:0],
        edit_biases=one[:0],
        masked=np.zeros(1, np.bool_),
        temperatures=one,
        targets=np.full(1, -1, np.int32),
    )


def logits(stage: VulkanStage, step: Step) -> np.ndarray:
    """Run a step and return the logits of its last row."""
    ticket = stage.submit(step, None, last_row(step.num_rows))
    stage.wait(ticket, 60.0)
    found = stage.raw_rows(ticket, np.zeros(1, np.int32)).copy()
    stage.release(ticket)
    return found


def test_two_steps_in_flight_do_not_disturb_each_other(stage: VulkanStage) -> None:
    steps = [step_of([3, 4, 5], 0, [0]), step_of([8, 9], 0, [5])]
    alone = [logits(stage, step) for step in steps]
    tickets = [stage.submit(step, None, last_row(step.num_rows)) for step in steps]
    for ticket, expected in zip(reversed(tickets), reversed(alone), strict=True):
        stage.wait(ticket, 60.0)
        assert np.array_equal(stage.raw_rows(ticket, np.zeros(1, np.int32)), expected)
        stage.release(ticket)


def test_a_step_is_fed_from_the_one_before_it_before_that_has_ended(stage: VulkanStage) -> None:
    first = stage.submit(step_of([3, 4, 5], 0, [0]), None, last_row(3))
    second = stage.submit(step_of([-1], 3, [0], feed=first), None, last_row(1))
    token = int(stage.wait(first, 60.0).ids[0, 0])
    stage.release(first)
    stage.wait(second, 60.0)
    fed = stage.raw_rows(second, np.zeros(1, np.int32))
    stage.release(second)
    assert np.array_equal(fed, logits(stage, step_of([token], 3, [0])))


def test_a_step_is_not_fed_from_one_that_waits_for_masks(stage: VulkanStage) -> None:
    masked = msgspec.structs.replace(last_row(1), masked=np.ones(1, np.bool_))
    first = stage.submit(step_of([3], 0, [0]), None, masked)
    for call in (lambda: stage.wait(first, 60.0), lambda: stage.rows(first, np.zeros(1, np.int32))):
        with pytest.raises(ValueError, match="before apply_masks"):
            call()
    with pytest.raises(ValueError, match="before apply_masks"):
        stage.submit(step_of([-1], 1, [0], feed=first), None, last_row(1))
    stage.apply_masks(first, np.full((1, 5), 0b100, np.uint32))
    second = stage.submit(step_of([-1], 1, [0], feed=first), None, last_row(1))
    assert stage.wait(first, 60.0).num_allowed[0] == 5
    assert stage.wait(second, 60.0).num_allowed[0] == 131
    stage.release(first)
    stage.release(second)


def test_a_copied_block_continues_as_the_first_one(stage: VulkanStage) -> None:
    logits(stage, step_of([3, 4, 5], 0, [0]))
    expected = logits(stage, step_of([6], 3, [0]))
    step = step_of([6], 3, [7])
    copies = np.array([[0, 0, 7], [1, 0, 7]], np.int32)
    copied = Step(step.token_ids, step.positions, step.row_offsets, step.block_tables, copies)
    assert np.array_equal(logits(stage, copied), expected)


def test_blocks_can_be_saved_and_restored(stage: VulkanStage) -> None:
    logits(stage, step_of([3, 4, 5], 0, [0]))
    expected = logits(stage, step_of([6], 3, [0]))
    for group in BLOCKS:
        stage.write_blocks(group, np.array([8], np.int32), stage.read_blocks(group, np.array([0], np.int32)))
    assert np.array_equal(logits(stage, step_of([6], 3, [8])), expected)


def test_a_step_without_output_rows_only_stores_keys(stage: VulkanStage) -> None:
    step = step_of([3, 4], 0, [2])
    none = last_row(2)
    empty = Selection(
        none.rows[:0], none.edit_offsets[:1], none.edit_ids, none.edit_factors, none.edit_biases, none.masked[:0],
        none.temperatures[:0], none.targets[:0],
    )  # fmt: skip
    ticket = stage.submit(step, None, empty)
    assert stage.wait(ticket, 60.0).ids.shape[0] == 0
    stage.release(ticket)
    whole = logits(stage, step_of([3, 4, 5], 0, [3]))
    assert np.array_equal(logits(stage, step_of([5], 2, [2])), whole)


def test_more_steps_than_tickets_are_refused(stage: VulkanStage) -> None:
    tickets = [stage.submit(step_of([1], 0, [block]), None, last_row(1)) for block in range(LIMITS.tickets)]
    with pytest.raises(DeviceError, match="in flight"):
        stage.submit(step_of([1], 0, [5]), None, last_row(1))
    for ticket in tickets:
        stage.release(ticket)
    with pytest.raises(ValueError, match="not in flight"):
        stage.release(tickets[0])


def test_no_step_waits_for_a_compiler(physical: PhysicalDevice) -> None:
    fresh = VulkanDevice(physical, DeviceOptions())
    weights = fresh.load(small_model(), RandomSource(), lambda _done, _total: None)
    stage = weights.stage(BLOCKS, LIMITS)
    prepared = {key[0] for key in fresh.runtime._algorithms}
    for rows in (1, 2, 3, 7, 16, 40, 70):
        logits(stage, step_of([1] * rows, 0, list(range(5))))
    logits(stage, step_of([1] * 3, 200, [*range(9), *range(6)]))
    first = stage.submit(step_of([3], 0, [0]), None, last_row(1))
    second = stage.submit(step_of([-1], 1, [0], feed=first), None, last_row(1))
    stage.wait(second, 60.0)
    stage.release(first)
    stage.release(second)
    assert {key[0] for key in fresh.runtime._algorithms} == prepared
    stage.close()
    weights.close()
    fresh.close()


def test_wrong_calls_are_refused(stage: VulkanStage) -> None:
    ticket = stage.submit(step_of([1], 0, [0]), None, last_row(1))
    with pytest.raises(ValueError, match="ends with the head"):
        stage.hidden(ticket)
    with pytest.raises(ValueError, match="is no tap"):
        stage.tap(ticket, 1)
    with pytest.raises(ValueError, match=r"outside of 0\.\.0"):
        stage.raw_rows(ticket, np.array([1], np.int32))
    with pytest.raises(ValueError, match="keeps nothing"):
        stage.read_blocks(5, np.zeros(1, np.int32))
    stage.release(ticket)


def test_a_closed_stage_takes_no_steps(stage: VulkanStage) -> None:
    stage.close()
    with pytest.raises(ValueError, match="closed"):
        stage.submit(step_of([1], 0, [0]), None, last_row(1))


def test_a_device_that_does_not_answer_is_lost_and_can_be_closed(
    physical: PhysicalDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = VulkanDevice(physical, DeviceOptions())
    weights = lost.load(small_model(), RandomSource(), lambda _done, _total: None)
    stage = weights.stage(BLOCKS, LIMITS)
    ticket = stage.submit(step_of([1], 0, [0]), None, last_row(1))
    with monkeypatch.context() as patched:
        patched.setattr(Recording, "wait", lambda _self, _timeout_s: False)
        with pytest.raises(DeviceLostError, match="did not finish within 1 s") as raised:
            stage.wait(ticket, 1.0)
        assert raised.value.devices == (lost.info.name,)
        with pytest.raises(ValueError, match="not in flight"):
            stage.release(ticket)
        stage.close()
    weights.close()
    lost.close()


@pytest.mark.parametrize("streamed", [(), (1, 2, 3, 4, 5, 6, 7, 8, 9)], ids=["resident", "streamed"])
def test_spans_say_what_was_copied_and_computed(device: VulkanDevice, streamed: tuple[int, ...]) -> None:
    program = small_model(streamed)
    weights = device.load(program, RandomSource(), lambda _done, _total: None)
    opened = weights.stage(BLOCKS, msgspec.structs.replace(LIMITS, spans=True))
    ticket = opened.submit(step_of([3, 4, 5], 0, [0]), None, last_row(3))
    opened.wait(ticket, 60.0)
    spans = opened.spans(ticket)
    opened.release(ticket)
    opened.close()
    weights.close()
    kinds = ("launch", "device", "copy", "weights")
    of_kind = {kind: [one.name for one in spans if one.kind == kind] for kind in kinds}
    assert of_kind["launch"] == ["submit"]
    parts = [f"part {number}" for number in streamed]
    if streamed:
        assert of_kind["weights"] == [*parts, "part 9"]  # the last part, and its head
        assert of_kind["copy"] == ["inputs"]
        assert of_kind["device"] == ["layers", *parts, "part 9", "candidates"]
        # Copies for a part begin before the part before it: with two queues, both run at once.
        begins = {(one.kind, one.name): one.start_s for one in reversed(spans)}
        assert begins["weights", "part 2"] < begins["device", "part 1"]
    else:
        assert of_kind["weights"] == []
        assert of_kind["copy"] == ["inputs"]
        assert of_kind["device"] == ["layers", "head", "candidates"]
