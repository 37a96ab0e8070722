"""Steps of a stage: tickets, what waits for masks and edits, blocks, and failures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from llmd.api import (
    DeviceError,
    DeviceLostError,
    StageLimits,
    Ticket,
)
from llmd.api.errors import DeviceMemoryError
from llmd_backend_cuda import tickets as tickets_module
from llmd_backend_cuda.stage import CudaStage
from llmd_backend_cuda.step_marks import StreamClock
from tests.cuda.simulated import NEEDS_COMPILER, HangingCard, SimulatedCard
from tests.plugins.backend_cpu.workbench import select
from tests.plugins.backend_cuda.bench import (
    FIRST,
    LIMITS,
    MODEL,
    WORDS,
    Bench,
    allowing,
    edits,
    hidden_of,
    late,
    one,
    sequences,
)

pytestmark = NEEDS_COMPILER

VOCAB = MODEL.vocab


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def stage(bench: Bench) -> CudaStage:
    return bench.stage


@pytest.fixture
def middle() -> Bench:
    """A layer without embedding and head."""
    return Bench(first=1, last=3)


# Tickets


@pytest.mark.parametrize("deferred", [False, True])
def test_tickets_in_flight_keep_their_own_results(deferred: bool) -> None:  # noqa: FBT001 - cases
    bench = Bench(SimulatedCard(deferred=deferred))
    stage = bench.stage
    steps = [one(3, 0, [0], seed=1), one(2, 0, [1], seed=2)]
    tickets = [stage.submit(step, None, select(step.num_rows)) for step in steps]
    with pytest.raises(DeviceError, match="all 2 tickets are in flight"):
        stage.submit(steps[0], None, select(3))
    results = [stage.wait(ticket, 1.0) for ticket in tickets]
    kept = [stage.raw_rows(ticket, FIRST) for ticket in tickets]
    best = [result.ids[:, 0].tolist() for result in results]
    assert best[0][:1] == [int(kept[0].argmax())]
    stage.release(tickets[0])
    again = stage.submit(steps[1], None, select(2))
    assert again not in tickets
    assert stage.wait(again, 1.0).ids[:, 0].tolist() == best[1]
    np.testing.assert_array_equal(stage.raw_rows(again, FIRST), kept[1])
    assert not np.array_equal(kept[0], kept[1])


@pytest.mark.parametrize(
    "call",
    [
        lambda stage, ticket: stage.wait(ticket, 1.0),
        lambda stage, ticket: stage.rows(ticket, FIRST),
        lambda stage, ticket: stage.raw_rows(ticket, FIRST),
        lambda stage, ticket: stage.tap(ticket, 0),
        lambda stage, ticket: stage.apply_masks(ticket, allowing()),
        lambda stage, ticket: stage.apply_edits(ticket, edits()),
        lambda stage, ticket: stage.release(ticket),
    ],
)
def test_unknown_tickets_are_refused(stage: CudaStage, call: Callable[[CudaStage, Ticket], object]) -> None:
    released = stage.submit(one(1), None, select(1))
    stage.release(released)
    for ticket in (released, Ticket(99)):
        with pytest.raises(ValueError, match=f"ticket {ticket} is not in flight"):
            call(stage, ticket)


def test_a_ticket_may_be_released_before_its_step_ends() -> None:
    expected = Bench()
    expected.logits(one(18, 0, [0, 1]))
    logits = expected.logits(one(1, 18, [0, 1]))
    bench = Bench(SimulatedCard(deferred=True), limits=msgspec.structs.replace(LIMITS, tickets=1))
    bench.stage.release(bench.stage.submit(one(18, 0, [0, 1]), None, select(18)))
    np.testing.assert_array_equal(bench.logits(one(1, 18, [0, 1])), logits)


# Outputs


def test_a_step_may_need_no_output(stage: CudaStage) -> None:
    assert stage.wait(stage.submit(one(5), None, select(0)), 1.0).ids.shape == (0, 64)


def test_masked_rows_wait_for_their_masks(stage: CudaStage) -> None:
    ticket = stage.submit(one(3), None, select(3, masked=[0, 2]))
    for call in (lambda: stage.wait(ticket, 1.0), lambda: stage.rows(ticket, FIRST)):
        with pytest.raises(ValueError, match="before apply_masks"):
            call()
    with pytest.raises(ValueError, match=rf"expected uint32 \(2, {WORDS}\)"):
        stage.apply_masks(ticket, allowing(5))
    assert stage.raw_rows(ticket, FIRST).shape == (1, VOCAB)
    stage.apply_masks(ticket, allowing(5, 130))
    result = stage.wait(ticket, 1.0)
    assert result.ids[[0, 2], 0].tolist() == [5, 130]
    assert result.num_allowed.tolist() == [1, VOCAB, 1]
    assert np.isneginf(stage.rows(ticket, FIRST)[0, 4])


def test_late_rows_wait_for_their_edits_and_then_for_their_masks(stage: CudaStage) -> None:
    selection = msgspec.structs.replace(late(2, [1]), masked=np.array([False, True]))
    ticket = stage.submit(one(2), None, selection)
    with pytest.raises(ValueError, match="before apply_edits"):
        stage.wait(ticket, 1.0)
    with pytest.raises(ValueError, match="apply_edits before apply_masks"):
        stage.apply_masks(ticket, allowing(7))
    with pytest.raises(ValueError, match="ids reach 131"):
        stage.apply_edits(ticket, edits([(VOCAB, 1.0)]))
    stage.apply_edits(ticket, edits([(7, 1000.0)]))
    with pytest.raises(ValueError, match="before apply_masks"):
        stage.wait(ticket, 1.0)
    stage.apply_masks(ticket, allowing(7))
    result = stage.wait(ticket, 1.0)
    assert result.ids[1, 0] == 7
    assert result.edited[1, 0] > 900.0


def test_output_rows_outside_of_the_selection_are_refused(stage: CudaStage) -> None:
    ticket = stage.submit(one(2), None, select(2))
    for outputs in ([2], [-1]):
        for read in (stage.rows, stage.raw_rows):
            with pytest.raises(ValueError, match=r"output rows .* are outside of 0..1"):
                read(ticket, np.array(outputs, np.int32))
    both = stage.raw_rows(ticket, np.array([1, 0], np.int32))
    np.testing.assert_array_equal(both[1:], stage.raw_rows(ticket, FIRST))


def test_more_output_rows_than_rows_are_computed() -> None:
    """Forks draw from the same row."""
    bench = Bench(limits=StageLimits(max_rows=2, max_sequences=1, max_outputs=40))
    single = bench.logits(one(2))
    selection = msgspec.structs.replace(select(40), rows=np.repeat(np.arange(2, dtype=np.int32), 20))
    ticket = bench.stage.submit(one(2), None, selection)
    many = bench.stage.raw_rows(ticket, np.arange(40, dtype=np.int32))
    np.testing.assert_array_equal(many, np.repeat(single, 20, axis=0))


# Feeding


def test_a_step_is_fed_with_the_tokens_of_a_ticket(bench: Bench) -> None:
    stage = bench.stage
    first = stage.submit(sequences([(0, 2), (0, 1)], [[0], [1]]), None, select(3))
    chosen = stage.wait(first, 1.0).ids[:, 0]
    step = sequences([(2, 1), (1, 1)], [[0], [1]])
    by_ticket = msgspec.structs.replace(step, token_ids=np.array([-2, -3], np.int32), feed=first)
    by_host = msgspec.structs.replace(step, token_ids=np.array([chosen[1], chosen[2]], np.int32))
    logits = bench.logits(by_ticket)
    np.testing.assert_array_equal(bench.logits(by_host), logits)
    stage.release(first)
    with pytest.raises(ValueError, match="not in flight"):
        stage.submit(by_ticket, None, select(2))


def test_a_ticket_feeds_no_step_before_its_masks(stage: CudaStage) -> None:
    first = stage.submit(one(1), None, select(1, masked=[0]))
    step = msgspec.structs.replace(one(1, 1), token_ids=np.array([-1], np.int32), feed=first)
    with pytest.raises(ValueError, match="before apply_masks"):
        stage.submit(step, None, select(1))
    stage.apply_masks(first, allowing(9))
    stage.submit(step, None, select(1))


# Blocks


def test_a_sequence_goes_on_from_blocks_that_another_stage_held() -> None:
    first, second = Bench(), Bench()
    first.logits(one(18, 0, [3, 5]))
    expected = first.logits(one(1, 18, [3, 5]))
    first.logits(one(18, 0, [3, 5]))
    for group in (0, 1):
        held = first.stage.read_blocks(group, np.array([3, 5], np.int32))
        assert held.shape == (2, first.weights.kv_bytes(group, "f16"))
        second.stage.write_blocks(group, np.array([1, 0], np.int32), held)
    np.testing.assert_array_equal(second.logits(one(1, 18, [1, 0])), expected)


def test_blocks_that_are_not_there_are_refused(stage: CudaStage) -> None:
    held = stage.read_blocks(0, FIRST)
    for block in (8, -1):
        with pytest.raises(ValueError, match=r"outside 0..7"):
            stage.read_blocks(0, np.array([block], np.int32))
        with pytest.raises(ValueError, match=r"outside 0..7"):
            stage.write_blocks(0, np.array([block], np.int32), held)
    with pytest.raises(ValueError, match="expected"):
        stage.write_blocks(0, FIRST, held[:, 1:])
    with pytest.raises(ValueError, match="nothing for KV group 7"):
        stage.read_blocks(7, FIRST)


@pytest.mark.parametrize("most", [1024, 1])
def test_blocks_are_copied_in_order_before_the_layers(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(tickets_module, "_MOST_COPIES", most)
    bench = Bench(SimulatedCard(deferred=True))
    bench.logits(one(18, 0, [0, 1]))
    expected = bench.logits(one(1, 18, [0, 1]))
    bench.logits(one(18, 0, [2, 3]))
    copies = [(group, source, to) for group in (0, 1) for source, to in ((2, 7), (7, 4), (3, 5), (3, 7))]
    step = msgspec.structs.replace(one(1, 18, [4, 5]), copies=np.array(copies, np.int32))
    np.testing.assert_array_equal(bench.logits(step), expected)


def test_a_block_table_may_be_wider_than_the_context(bench: Bench) -> None:
    expected = bench.logits(one(2, 0, [3]))
    wide = [3, *[-1] * (MODEL.context_len // 16 + 4)]
    np.testing.assert_array_equal(bench.logits(one(2, 0, wide)), expected)


# Steps that are refused

BAD_STEPS: dict[str, tuple[dict[str, Any], str]] = {
    "dtype": ({"positions": np.array([0, 1], np.int64)}, "positions is int64"),
    "beyond the context": ({"positions": np.array([255, 256], np.int32)}, "positions reach"),
    "token": ({"token_ids": np.array([0, VOCAB], np.int32)}, "token_ids reach"),
    "no feed": ({"token_ids": np.array([0, -1], np.int32)}, "a negative token id needs a ticket"),
    "block": ({"block_tables": (np.array([[8]], np.int32), np.array([[0]], np.int32))}, "block table of"),
    "copy": ({"copies": np.array([[0, 0, 8]], np.int32)}, "out of range"),
}


@pytest.mark.parametrize("name", BAD_STEPS)
def test_refuses_a_step_that_contradicts_the_contract(bench: Bench, name: str) -> None:
    changes, message = BAD_STEPS[name]
    bench.card.launched.clear()
    for _ in range(3):
        with pytest.raises(ValueError, match=message):
            bench.stage.submit(msgspec.structs.replace(one(2), **changes), None, select(2))
    assert bench.card.launched == []
    assert bench.card.num_graphs == 0
    for block in (0, 1):
        bench.stage.submit(one(2, 0, [block]), None, select(2))


def test_hidden_states_and_selections_come_exactly_where_they_belong(stage: CudaStage, middle: Bench) -> None:
    with pytest.raises(ValueError, match="a selection is needed"):
        stage.submit(one(1), None, None)
    with pytest.raises(ValueError, match="hidden states are needed"):
        middle.stage.submit(one(1), None, None)
    with pytest.raises(ValueError, match=r"hidden rows is float32 \(2, 40\)"):
        middle.stage.submit(one(1), hidden_of(2), None)


def test_a_closed_stage_runs_nothing(bench: Bench) -> None:
    used = bench.card.used_bytes
    ticket = bench.stage.submit(one(1), None, select(1))
    bench.stage.close()
    bench.stage.close()
    assert bench.card.used_bytes < used
    with pytest.raises(ValueError, match="closed"):
        bench.stage.submit(one(1), None, select(1))
    with pytest.raises(ValueError, match="closed"):
        bench.stage.read_blocks(0, FIRST)
    with pytest.raises(ValueError, match="not in flight"):
        bench.stage.wait(ticket, 1.0)


def test_closing_a_stage_frees_all_that_it_allocated() -> None:
    bench = Bench()
    bench.stage.submit(one(1), None, select(1))
    bench.stage.close()
    kept = bench.card.used_bytes
    stage = bench.weights.stage({0: 8, 1: 8}, LIMITS)
    assert bench.card.used_bytes > kept
    stage.close()
    assert bench.card.used_bytes == kept


# Failures


def test_a_step_that_never_ends_is_a_lost_device() -> None:
    card = HangingCard()
    bench = Bench(card)
    ticket = bench.stage.submit(one(1), None, select(1))
    card.hangs = True
    with pytest.raises(DeviceLostError, match=r"did not finish within 0.5 s") as caught:
        bench.stage.wait(ticket, 0.5)
    assert caught.value.devices == ("simulated",)
    with pytest.raises(ValueError, match="not in flight"):
        bench.stage.release(ticket)
    bench.stage.close()


def test_too_little_memory_for_a_step_is_an_error_of_the_device(bench: Bench) -> None:
    """The engine then takes a smaller KV pool."""
    step = msgspec.structs.replace(one(1), copies=np.tile(np.array([0, 1, 2], np.int32), (2000, 1)))
    bench.card.memory_bytes = bench.card.used_bytes
    for _ in range(3):
        with pytest.raises(DeviceMemoryError, match="are asked for, 0 are free"):
            bench.stage.submit(step, None, select(1))
    bench.card.memory_bytes += 1 << 20
    for _ in range(2):
        bench.stage.submit(step, None, select(1))


def test_too_little_memory_for_late_edits_is_an_error_of_the_device(bench: Bench) -> None:
    ticket = bench.stage.submit(one(20, 0, [0, 1]), None, late(20, [0]))
    bench.card.memory_bytes = bench.card.used_bytes
    many = edits([(token % VOCAB, 1.0) for token in range(20 * 300)])
    with pytest.raises(DeviceMemoryError, match="are asked for, 0 are free"):
        bench.stage.apply_edits(ticket, many)


# Times of steps

TIMED = msgspec.structs.replace(LIMITS, spans=True)


@pytest.mark.parametrize("deferred", [False, True])
def test_a_step_has_times_of_launch_card_and_copies(deferred: bool) -> None:  # noqa: FBT001 - cases
    stage = Bench(SimulatedCard(deferred=deferred), limits=TIMED).stage
    ticket = stage.submit(one(3), None, late(3, [2]))
    stage.apply_edits(ticket, edits([(5, 1.0)]))
    stage.wait(ticket, 60.0)
    assert [(span.kind, span.name) for span in stage.spans(ticket)] == [
        ("launch", "submit"),
        ("launch", "edits"),
        ("copy", "inputs"),
        ("device", "layers, candidates"),
        ("device", "edits"),
        ("copy", "results"),
    ]


def test_a_stage_without_the_head_copies_hidden_states() -> None:
    stage = Bench(first=1, last=3, limits=TIMED).stage
    ticket = stage.submit(one(2), hidden_of(2), None)
    stage.hidden(ticket).host()
    names = [(span.kind, span.name) for span in stage.spans(ticket)]
    assert names == [
        ("launch", "submit"),
        ("copy", "inputs"),
        ("copy", "inputs"),
        ("device", "layers"),
        ("copy", "hidden states"),
    ]


def test_without_times_the_stream_has_no_marks(monkeypatch: pytest.MonkeyPatch, stage: CudaStage) -> None:
    monkeypatch.setattr(SimulatedCard, "timestamp", None)
    ticket = stage.submit(one(3), None, select(3))
    assert stage.wait(ticket, 60.0).ids.shape[0] == 3


def test_the_clock_is_set_again_only_while_nothing_is_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Bench(limits=TIMED).stage
    refreshed: list[None] = []
    monkeypatch.setattr(StreamClock, "refresh", lambda _clock: refreshed.append(None))
    first = stage.submit(one(2), None, select(2))
    second = stage.submit(one(2, 0, [1]), None, select(2))
    assert len(refreshed) == 1
    for ticket in (first, second):
        stage.wait(ticket, 60.0)
        stage.release(ticket)
    stage.submit(one(2), None, select(2))
    assert len(refreshed) == 2
