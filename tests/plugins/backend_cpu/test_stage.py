"""Steps of a CPU stage: tickets, candidates, copies, feeding, and arrays that violate the contract."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from llmd.api import (
    HIDDEN,
    KV_DTYPES,
    DeviceError,
    Embed,
    EmbedTokenType,
    Head,
    HostHidden,
    KVDtype,
    KVGroup,
    ModelPlan,
    Part,
    Selection,
    Step,
    TensorRef,
    Ticket,
)
from llmd.models.lowering import lower
from llmd_backend_cpu.device import CpuDevice
from llmd_backend_cpu.stage import CpuStage
from tests.plugins.backend_cpu.workbench import (
    attention,
    head_program,
    in_format,
    linear,
    middle_program,
    one_sequence,
    open_stage,
    plain,
    random_rows,
    run_rows,
    select,
)

WIDTH, VOCAB = 24, 300


@pytest.fixture
def cpu() -> CpuDevice:
    return CpuDevice(threads=2)


@pytest.fixture
def head(device: CpuDevice) -> CpuStage:
    """A stage of the head alone, with the identity in its first rows: logits 0..23 are the hidden state."""
    program = head_program(Head(HIDDEN, TensorRef("w", (VOCAB, WIDTH))), WIDTH, VOCAB)
    return open_stage(device, program, {"w": plain(np.eye(VOCAB, WIDTH))})


@pytest.fixture
def layer(cpu: CpuDevice) -> CpuStage:
    """A stage of one attention over blocks 0 to 7."""
    program = middle_program(attention(2, 1, 16), 32, {}, KVGroup(0, None, 1, 16, (0,)))
    weights = {name: plain(random_rows(16, 32, seed)) for seed, name in enumerate(("k", "v"))}
    return open_stage(cpu, program, weights, rows=40, blocks=8)


def submit(stage: CpuStage, x: np.ndarray, selection: Selection) -> Ticket:
    return stage.submit(one_sequence(len(x)), HostHidden(x.astype(np.float32)), selection)


def test_candidates_are_sorted_by_edited_logit_then_id(head: CpuStage) -> None:
    x = np.zeros((1, WIDTH), np.float32)
    x[0, [3, 17]] = 5.0
    x[0, 9] = -1.0
    result = head.wait(submit(head, x, select(1)), 1.0)
    assert result.ids.shape == (1, 64)
    assert result.ids[0, :4].tolist() == [3, 17, 0, 1]
    assert 9 not in result.ids[0]
    np.testing.assert_array_equal(result.edited[0, :3], [5.0, 5.0, 0.0])


@pytest.mark.parametrize("fmt", ["f32", "bf16", "q8"])
def test_a_step_may_need_no_output(device: CpuDevice, fmt: str) -> None:
    """As in a prefill chunk that is not the last."""
    program = head_program(Head(HIDDEN, TensorRef("w", (VOCAB, WIDTH))), WIDTH, VOCAB, fmt)
    stage = open_stage(device, program, {"w": in_format(np.eye(VOCAB, WIDTH), fmt)})
    assert len(stage.wait(submit(stage, random_rows(20, WIDTH), select(0)), 1.0).ids) == 0


def test_edits_change_candidates_but_not_raw_values(head: CpuStage) -> None:
    x = np.zeros((2, WIDTH), np.float32)
    x[:, 3], x[:, 4] = 4.0, -4.0
    selection = select(
        2, edits={0: [(3, 2.0, 0.5), (4, 2.0, 0.0), (20, 1.0, 9.0)]}, targets=[3, -1], raw_top=2
    )
    ticket = submit(head, x, selection)
    result = head.wait(ticket, 1.0)
    assert result.ids[0, :2].tolist() == [20, 3]
    np.testing.assert_array_equal(result.edited[0, :2], [9.0, 2.5])
    np.testing.assert_array_equal(result.raw[0, :2], [0.0, 4.0])
    assert result.ids[1, 0] == 3
    assert result.target_raw[0] == 4.0
    assert np.isnan(result.target_raw[1])
    assert result.top_ids.tolist() == [[3, 0], [3, 0]]
    expected = np.log(np.exp(4.0) + np.exp(-4.0) + VOCAB - 2)
    np.testing.assert_allclose(result.raw_logsumexp, [expected, expected], rtol=1e-6)
    edited = head.rows(ticket, np.array([1, 0], np.int32))
    assert edited[1, [3, 4, 20]].tolist() == [2.5, -8.0, 9.0]
    assert head.raw_rows(ticket, np.array([0], np.int32))[0, [3, 4, 20]].tolist() == [4.0, -4.0, 0.0]


def test_a_row_can_be_selected_twice(head: CpuStage) -> None:
    x = np.arange(WIDTH, dtype=np.float32).reshape(1, WIDTH)
    twice = msgspec.structs.replace(
        select(2), rows=np.zeros(2, np.int32), temperatures=np.array([1.0, 0.5], np.float32)
    )
    result = head.wait(submit(head, x, twice), 1.0)
    assert result.ids[0, :2].tolist() == [WIDTH - 1, WIDTH - 2]
    np.testing.assert_array_equal(result.ids[0], result.ids[1])
    assert result.edited_logsumexp[0] < result.edited_logsumexp[1]


def test_temperature_scales_only_the_edited_logsumexp(head: CpuStage) -> None:
    x = random_rows(1, WIDTH)
    result = head.wait(submit(head, x, select(1, temperature=0.25)), 1.0)
    logits = np.zeros(VOCAB)
    logits[:WIDTH] = x[0]
    np.testing.assert_allclose(result.edited_logsumexp[0], np.log(np.exp(logits / 0.25).sum()), rtol=1e-6)
    np.testing.assert_allclose(result.raw_logsumexp[0], np.log(np.exp(logits).sum()), rtol=1e-6)


def test_masked_rows_wait_for_their_masks(head: CpuStage) -> None:
    x = np.tile(np.arange(WIDTH, dtype=np.float32), (3, 1))
    ticket = submit(head, x, select(3, masked=[0, 2]))
    with pytest.raises(ValueError, match="before apply_masks"):
        head.wait(ticket, 1.0)
    masks = np.zeros((2, 10), np.uint32)
    masks[0, 0], masks[1, 9] = (1 << 5) | (1 << 7), 1 << 2
    head.apply_masks(ticket, masks)
    result = head.wait(ticket, 1.0)
    assert result.ids[:, 0].tolist() == [7, 23, 290]
    assert result.ids[0, 1] == 5
    assert np.isneginf(result.edited[0, 2])
    np.testing.assert_allclose(result.edited_logsumexp[0], np.log(np.exp(5) + np.exp(7)), rtol=1e-6)
    assert result.edited_logsumexp[2] == 0.0
    p = 1 / (1 + np.exp(-2))
    entropy = -p * np.log(p) - (1 - p) * np.log(1 - p)
    np.testing.assert_allclose(result.edited_entropy[[0, 2]], [entropy, 0.0], rtol=1e-6)
    assert result.edited_deviation[[0, 2]].tolist() == [1.0, 0.0]
    assert result.num_allowed.tolist() == [2, VOCAB, 1]
    assert np.isneginf(head.rows(ticket, np.array([2], np.int32))[0, 23])
    assert head.raw_rows(ticket, np.array([2], np.int32))[0, 23] == 23.0


@pytest.mark.parametrize("shape", [(1, 10), (2, 9), (2, 11)])
def test_masks_of_another_shape_are_refused(head: CpuStage, shape: tuple[int, int]) -> None:
    ticket = submit(head, np.zeros((2, WIDTH)), select(2, masked=[0, 1]))
    with pytest.raises(ValueError, match=r"expected uint32 \(2, 10\)"):
        head.apply_masks(ticket, np.zeros(shape, np.uint32))


def test_a_forbidden_vocabulary_has_no_mass(head: CpuStage) -> None:
    ticket = submit(head, np.zeros((1, WIDTH)), select(1, masked=[0]))
    head.apply_masks(ticket, np.zeros((1, 10), np.uint32))
    result = head.wait(ticket, 1.0)
    assert np.isneginf(result.edited_logsumexp[0])
    assert (result.edited_entropy[0], result.edited_deviation[0], result.num_allowed[0]) == (0.0, 0.0, 0)
    assert result.ids[0].tolist() == list(range(64))


def test_a_step_is_fed_with_the_best_token_of_a_ticket(cpu: CpuDevice) -> None:
    table, weight = TensorRef("table", (VOCAB, WIDTH)), TensorRef("w", (VOCAB, WIDTH))
    parts = (
        Part("embed", "embed", None, (Embed(HIDDEN, table),)),
        Part("layer", "ffn", 0, ()),
        Part("head", "head", None, (Head(HIDDEN, weight),)),
    )
    program = lower(
        ModelPlan("test", WIDTH, VOCAB, 64, 64, (), parts), 0, 3, format_of=lambda _kind, _ref: "f32"
    )
    weights = {"table": plain(random_rows(VOCAB, WIDTH, 1)), "w": plain(random_rows(VOCAB, WIDTH, 2))}
    stage = open_stage(cpu, program, weights)
    first = stage.submit(with_tokens(one_sequence(2), [7, 8]), None, select(2))
    chosen = stage.wait(first, 1.0).ids[:, 0].tolist()
    step = msgspec.structs.replace(with_tokens(one_sequence(3, 2), [-2, 5, -1]), feed=first)
    fed = stage.submit(step, None, select(3))
    logits = stage.raw_rows(fed, np.arange(3, dtype=np.int32))
    stage.release(first)
    told = stage.submit(with_tokens(one_sequence(3, 2), [chosen[1], 5, chosen[0]]), None, select(3))
    np.testing.assert_array_equal(stage.raw_rows(told, np.arange(3, dtype=np.int32)), logits)
    stage.release(told)
    with pytest.raises(ValueError, match="not in flight"):
        stage.submit(step, None, select(3))


@pytest.mark.parametrize("token", [-1, -3, VOCAB])
def test_tokens_without_a_source_are_refused(cpu: CpuDevice, token: int) -> None:
    parts = (
        Part("embed", "embed", None, (Embed(HIDDEN, TensorRef("table", (VOCAB, 8))),)),
        Part("layer", "ffn", 0, ()),
    )
    program = lower(ModelPlan("test", 8, VOCAB, 64, 64, (), parts), 0, 1, format_of=lambda _kind, _ref: "f32")
    stage = open_stage(cpu, program, {"table": plain(np.zeros((VOCAB, 8)))})
    with pytest.raises(ValueError, match="token_ids"):
        stage.submit(with_tokens(one_sequence(1), [token]), None, None)


def with_tokens(step: Step, tokens: list[int]) -> Step:
    return msgspec.structs.replace(step, token_ids=np.array(tokens, np.int32))


def test_blocks_are_copied_before_the_layers(layer: CpuStage) -> None:
    x = random_rows(33, 32)
    whole = run_rows(layer, x, one_sequence(33, 0, [0, 1, 2]))
    run_rows(layer, x[:32], one_sequence(32, 0, [3, 4]))
    step = msgspec.structs.replace(
        one_sequence(1, 32, [5, 6, 7]), copies=np.array([[0, 3, 6], [0, 6, 5], [0, 4, 6]], np.int32)
    )
    np.testing.assert_array_equal(run_rows(layer, x[32:], step)[0], whole[32])


def test_tickets_in_flight_keep_their_own_results(layer: CpuStage) -> None:
    x = random_rows(4, 32)
    one = layer.submit(one_sequence(2, 0, [0]), HostHidden(x[:2]), None)
    two = layer.submit(one_sequence(2, 0, [1]), HostHidden(x[2:]), None)
    kept = layer.hidden(one).host().copy()
    with pytest.raises(DeviceError, match="all 2 tickets are in flight"):
        layer.submit(one_sequence(2, 0, [2]), HostHidden(x[2:]), None)
    layer.release(one)
    three = layer.submit(one_sequence(2, 0, [2]), HostHidden(x[:2]), None)
    assert three not in {one, two}
    np.testing.assert_array_equal(layer.hidden(three).host(), kept)
    assert not np.array_equal(layer.hidden(two).host(), kept)
    with pytest.raises(ValueError, match="not in flight"):
        layer.release(one)


def test_a_refused_step_holds_no_ticket(layer: CpuStage) -> None:
    x = random_rows(2, 32)
    for _ in range(5):
        with pytest.raises(ValueError, match="block_tables"):
            layer.submit(one_sequence(2, 0, [99]), HostHidden(x), None)
    layer.submit(one_sequence(2, 0, [0]), HostHidden(x), None)
    layer.submit(one_sequence(2, 0, [1]), HostHidden(x), None)


BAD_STEPS: dict[str, tuple[dict[str, Any], str]] = {
    "dtype": ({"positions": np.array([0, 1], np.int64)}, "positions is int64"),
    "length": ({"positions": np.array([0], np.int32)}, "positions"),
    "negative": ({"positions": np.array([-1, 0], np.int32)}, "positions"),
    "beyond the window": ({"positions": np.array([4095, 4096], np.int32)}, "context window"),
    "jump": ({"positions": np.array([0, 2], np.int32)}, "consecutive"),
    "offsets": ({"row_offsets": np.array([0, 3], np.int32)}, "row_offsets"),
    "empty sequence": (
        {"row_offsets": np.array([0, 0, 2], np.int32), "block_tables": (np.zeros((2, 1), np.int32),)},
        "row_offsets",
    ),
    "no table": ({"block_tables": ()}, "block_tables for 1 KV groups"),
    "unset block": ({"block_tables": (np.array([[-1]], np.int32),)}, "outside of the pool"),
    "block": ({"block_tables": (np.array([[8]], np.int32),)}, "outside of the pool"),
    "strided": ({"block_tables": (np.zeros((1, 4), np.int32)[:, ::2],)}, "block_tables"),
    "narrow": ({"positions": np.array([15, 16], np.int32)}, "too narrow"),
    "copy group": ({"copies": np.array([[1, 0, 0]], np.int32)}, "unknown group"),
    "copy block": ({"copies": np.array([[0, 0, 8]], np.int32)}, "copies"),
    "copies": ({"copies": np.zeros((2, 2), np.int32)}, "copies"),
}


@pytest.mark.parametrize("name", BAD_STEPS)
def test_refuses_a_step_that_contradicts_the_contract(layer: CpuStage, name: str) -> None:
    changes, message = BAD_STEPS[name]
    step = msgspec.structs.replace(one_sequence(2, 0, [0]), **changes)
    with pytest.raises(ValueError, match=message):
        layer.submit(step, HostHidden(random_rows(2, 32)), None)


def test_token_types_that_the_model_does_not_tell_apart_are_refused(cpu: CpuDevice) -> None:
    parts = (
        Part("embed", "embed", None, (EmbedTokenType(HIDDEN, TensorRef("w", (2, WIDTH))),)),
        Part("x", "ffn", 0, ()),
    )
    plan = ModelPlan("test", WIDTH, VOCAB, 64, 64, (), parts)
    program = lower(plan, 0, 1, format_of=lambda _kind, _ref: "f32")
    stage = open_stage(cpu, program, {"w": plain(random_rows(2, WIDTH))})
    for types, message in (
        ([0, 2], "token_types lie outside"),
        ([0, -1], "token_types"),
        ([0], "token_types"),
    ):
        step = msgspec.structs.replace(one_sequence(2), token_types=np.array(types, np.int32))
        with pytest.raises(ValueError, match=message):
            stage.submit(step, None, None)


def test_refuses_more_rows_than_the_stage_was_made_for(layer: CpuStage) -> None:
    with pytest.raises(ValueError, match="41 rows, the stage was made for 1 to 40"):
        layer.submit(one_sequence(41, 0, [0, 1, 2]), HostHidden(random_rows(41, 32)), None)


BAD_SELECTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "dtype": ({"temperatures": np.ones(2)}, "temperatures is float64"),
    "order": ({"rows": np.array([1, 0], np.int32)}, "ascending"),
    "row": ({"rows": np.array([0, 2], np.int32)}, "rows"),
    "length": ({"targets": np.array([0], np.int32)}, "targets"),
    "target": ({"targets": np.array([0, VOCAB], np.int32)}, "targets lie outside"),
    "temperature": ({"temperatures": np.zeros(2, np.float32)}, "temperatures must be positive"),
    "offsets": ({"edit_offsets": np.array([0, 1, 0], np.int32)}, "edit_offsets"),
    "raw_top": ({"raw_top": 21}, "raw_top"),
    "edit": (
        {
            "edit_offsets": np.array([0, 1, 1], np.int32),
            "edit_ids": np.array([VOCAB], np.int32),
            "edit_factors": np.ones(1, np.float32),
            "edit_biases": np.ones(1, np.float32),
        },
        "edit_ids lie outside",
    ),
}


@pytest.mark.parametrize("name", BAD_SELECTIONS)
def test_refuses_a_selection_that_contradicts_the_contract(head: CpuStage, name: str) -> None:
    changes, message = BAD_SELECTIONS[name]
    selection = msgspec.structs.replace(select(2), **changes)
    with pytest.raises(ValueError, match=message):
        submit(head, np.zeros((2, WIDTH)), selection)


def test_hidden_states_and_selections_come_exactly_where_they_belong(head: CpuStage, layer: CpuStage) -> None:
    with pytest.raises(ValueError, match="a selection is needed if and only if"):
        head.submit(one_sequence(1), HostHidden(np.zeros((1, WIDTH), np.float32)), None)
    with pytest.raises(ValueError, match="hidden states are needed if and only if"):
        layer.submit(one_sequence(1, 0, [0]), None, None)
    with pytest.raises(ValueError, match=r"hidden states are \(2, 32\), expected \(1, 32\)"):
        layer.submit(one_sequence(1, 0, [0]), HostHidden(random_rows(2, 32)), None)
    with pytest.raises(ValueError, match="no candidates"):
        layer.wait(layer.submit(one_sequence(1, 0, [0]), HostHidden(random_rows(1, 32)), None), 1.0)


def test_output_rows_outside_of_the_selection_are_refused(head: CpuStage) -> None:
    ticket = submit(head, np.zeros((1, WIDTH)), select(1))
    for outputs in ([1], [-1]):
        with pytest.raises(ValueError, match="output rows"):
            head.rows(ticket, np.array(outputs, np.int32))


def test_a_closed_stage_runs_nothing(layer: CpuStage) -> None:
    layer.close()
    layer.close()
    with pytest.raises(ValueError, match="closed"):
        layer.submit(one_sequence(1, 0, [0]), HostHidden(random_rows(1, 32)), None)


def test_two_stages_of_a_device_take_turns(cpu: CpuDevice) -> None:
    stages = [
        open_stage(cpu, middle_program([linear(16)], 16, {}, None), {"w": plain(np.eye(16) * scale)})
        for scale in (2, 3)
    ]
    x = random_rows(1, 16)
    for _ in range(20):
        np.testing.assert_array_equal(run_rows(stages[0], x), 2 * x)
        np.testing.assert_array_equal(run_rows(stages[1], x), 3 * x)


@pytest.mark.parametrize("kv_dtype", KV_DTYPES)
def test_a_sequence_goes_on_from_blocks_that_another_stage_held(cpu: CpuDevice, kv_dtype: KVDtype) -> None:
    group = KVGroup(0, None, 2, 20, (0,))
    program = middle_program(attention(4, 2, 20), 80, {}, group)
    weights = {name: plain(random_rows(40, 80, seed)) for seed, name in enumerate(("k", "v"))}
    first, second = (open_stage(cpu, program, weights, blocks=4, kv_dtype=kv_dtype) for _ in range(2))
    x = random_rows(33, 80)
    expected = run_rows(first, x, one_sequence(33, 0, [3, 0, 2]))
    contents = first.read_blocks(0, np.array([3, 0], np.int32))
    assert contents.shape[1] * 4 == first.read_blocks(0, np.arange(4, dtype=np.int32)).size
    second.write_blocks(0, np.array([1, 2], np.int32), contents)
    np.testing.assert_array_equal(run_rows(second, x[32:], one_sequence(1, 32, [1, 2, 0])), expected[32:])


def test_blocks_that_are_not_there_are_refused(layer: CpuStage) -> None:
    held = layer.read_blocks(0, np.array([0], np.int32))
    with pytest.raises(ValueError, match="no block 99"):
        layer.read_blocks(0, np.array([99], np.int32))
    with pytest.raises(ValueError, match="no block -1"):
        layer.write_blocks(0, np.array([-1], np.int32), held)
    with pytest.raises(ValueError, match="expected"):
        layer.write_blocks(0, np.array([0], np.int32), held[:, 1:])
    with pytest.raises(ValueError, match="nothing for KV group 7"):
        layer.read_blocks(7, np.array([0], np.int32))


def test_a_step_has_the_times_of_its_native_calls(device: CpuDevice) -> None:
    program = head_program(Head(HIDDEN, TensorRef("w", (VOCAB, WIDTH))), WIDTH, VOCAB)
    stage = open_stage(device, program, {"w": plain(np.eye(VOCAB, WIDTH))}, spans=True)
    masked = msgspec.structs.replace(select(1), masked=np.array([True]))
    ticket = stage.submit(one_sequence(1), HostHidden(random_rows(1, WIDTH)), masked)
    stage.apply_masks(ticket, np.full((1, -(-VOCAB // 32)), 0xFFFFFFFF, np.uint32))
    arguments, step, masks = stage.spans(ticket)
    assert [one.kind for one in (arguments, step, masks)] == ["launch", "device", "device"]
    assert arguments.start_s < arguments.end_s == step.start_s < step.end_s < masks.start_s < masks.end_s
