"""Steps and selections that violate the contract are refused before anything runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import pytest

from llmd.api import (
    Draws,
    HostHidden,
    LateEdits,
    Program,
    Refusal,
    Selection,
    StageLimits,
    Step,
    Ticket,
    Weight,
)
from llmd.api.checks import (
    check_hidden,
    check_late_edits,
    check_selection,
    check_step,
    check_submit,
    misplaced_integers,
    missing_activations,
    missing_features,
    missing_ops,
    refusals,
)
from llmd.api.ops import FACTOR_OPS
from llmd.builtin.reference.device import ReferenceDevice
from llmd.engine.steps.batch import select_rows
from llmd.models.lowering import lower
from llmd.testing.encoder_plan import TinyEncoder
from llmd.testing.plans import TinyModel

LIMITS = StageLimits(max_rows=8, max_sequences=2, max_outputs=3)
BLOCKS = {0: 4, 1: 4}


def i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def make_step(**changes: Any) -> Step:
    table = np.array([[0, 1], [2, -1]], np.int32)
    step = Step(
        token_ids=i32(5, 6, 7),
        positions=i32(16, 17, 3),
        row_offsets=i32(0, 2, 3),
        block_tables=(table, table.copy()),
        copies=np.zeros((0, 3), np.int32),
    )
    return msgspec.structs.replace(step, **changes)


def make_selection(**changes: Any) -> Selection:
    return msgspec.structs.replace(select_rows(i32(1, 2)), **changes)


def test_a_good_step_and_selection_pass(program: Program) -> None:
    check_step(program, BLOCKS, LIMITS, make_step())
    check_selection(program, LIMITS, make_step(), make_selection())


def test_hidden_states_have_a_row_for_each_row_of_the_step(program: Program) -> None:
    check_hidden(program, make_step(), np.zeros((3, program.hidden_size), np.float32))
    with pytest.raises(ValueError, match="hidden rows is float32"):
        check_hidden(program, make_step(), np.zeros((2, program.hidden_size), np.float32))


def test_what_is_submitted_fits_the_ends_of_the_program_and_each_other(program: Program) -> None:
    hidden = HostHidden(np.zeros((3, program.hidden_size), np.float32))
    middle = msgspec.structs.replace(program, hidden_in=0, hidden_out=0)
    check_submit(program, BLOCKS, LIMITS, make_step(), None, make_selection())
    check_submit(middle, BLOCKS, LIMITS, make_step(), hidden, None)
    with pytest.raises(ValueError, match="hidden states are needed"):
        check_submit(program, BLOCKS, LIMITS, make_step(), hidden, make_selection())
    with pytest.raises(ValueError, match="a selection is needed"):
        check_submit(program, BLOCKS, LIMITS, make_step(), None, None)
    with pytest.raises(ValueError, match="positions reach"):
        check_submit(program, BLOCKS, LIMITS, make_step(positions=i32(-1, 0, 3)), None, make_selection())
    with pytest.raises(ValueError, match="rows reach"):
        check_submit(program, BLOCKS, LIMITS, make_step(), None, make_selection(rows=i32(1, 3)))
    with pytest.raises(ValueError, match="hidden rows is float32"):
        check_submit(middle, BLOCKS, LIMITS, make_step(), HostHidden(hidden.array[:2]), None)


def table(*rows: list[int]) -> tuple[np.ndarray, np.ndarray]:
    return (np.array(rows, np.int32), np.array([[0, 1], [2, -1]], np.int32))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"token_ids": i32(5, 6, 131)}, "token_ids reach"),
        ({"token_ids": i32(5, 6, -1)}, "needs a ticket"),
        ({"token_ids": i32(5, 6, -4), "feed": Ticket(0)}, "token_ids reach"),
        ({"token_ids": np.array([5, 6, 7])}, "token_ids is int64"),
        ({"token_ids": np.arange(6, dtype=np.int32)[::2]}, "not contiguous"),
        ({"positions": i32(16, 18, 3)}, "not consecutive"),
        ({"positions": i32(255, 256, 3)}, "positions reach"),
        ({"positions": i32(-1, 0, 3)}, "positions reach"),
        ({"row_offsets": i32(0, 2, 2)}, "row_offsets"),
        ({"row_offsets": i32(1, 2, 3)}, "row_offsets"),
        ({"row_offsets": i32(0, 3, 3)}, "row_offsets"),
        ({"row_offsets": i32(0, 1, 2, 3)}, "3 sequences"),
        ({"block_tables": (np.zeros((2, 2), np.int32),)}, "1 block tables"),
        ({"block_tables": table([0, 4], [2, -1])}, "block table of KV group 0"),
        ({"block_tables": table([-1, 1], [2, -1])}, "block table of KV group 0"),
        ({"block_tables": table([0], [2])}, "beyond a block table"),
        ({"copies": np.zeros((1, 2), np.int32)}, "copies are"),
        ({"copies": np.array([[0, 0, 4]], np.int32)}, "copy of block 0 to 4"),
        ({"copies": np.array([[2, 0, 1]], np.int32)}, "KV group 2 of 2"),
        ({"token_types": i32(0, 0, 1)}, "token_types reach"),
        ({"token_types": i32(0, 0)}, "token_types is"),
        ({"adapters": i32(0, -1)}, "adapters reach"),
        ({"adapters": i32(-1)}, "adapters is"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_bad_step_is_named(program: Program, changes: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_step(program, BLOCKS, LIMITS, make_step(**changes))


def test_adapters_are_those_of_the_stage(program: Program) -> None:
    check_step(program, BLOCKS, LIMITS, make_step(adapters=i32(-1, -1)))
    check_step(
        program, BLOCKS, msgspec.structs.replace(LIMITS, max_adapters=1), make_step(adapters=i32(0, -1))
    )


def with_slots(*slots: list[int], first: int = 3) -> Step:
    """Return a step with these slots; the first sequence begins at position 16, the second at ``first``."""
    blocks = np.array([[0, 1], [2, -1]], np.int32)
    return make_step(positions=i32(16, 17, first), block_tables=(blocks, np.array(slots, np.int32)))


def test_sequences_read_and_write_slots(hybrid: Program) -> None:
    check_step(hybrid, BLOCKS, LIMITS, with_slots([0, 1], [2, 3]))
    check_step(hybrid, BLOCKS, LIMITS, with_slots([0, 0], [-1, 3], first=0))
    with pytest.raises(ValueError, match="if and only if it starts at position 0"):
        check_step(hybrid, BLOCKS, LIMITS, with_slots([0, 0], [2, 3], first=0))
    check_step(hybrid, BLOCKS, LIMITS, with_slots([0, 1], [0, 3]))


@pytest.mark.parametrize(
    ("slots", "message"),
    [
        (([0, -1], [2, 4]), "written slots of KV group 1 reach -1..4"),
        (([0, 1], [4, 2]), "read slots of KV group 1 reach"),
        (([0, 1], [-1, 2]), "if and only if it starts at position 0"),
        (([0, 1], [2, 1]), "while another sequence uses them"),
        (([0, 1], [1, 2]), "while another sequence uses them"),
        (([0, 0], [0, 2]), "while another sequence uses them"),
        (([0, 1, 0], [2, 3, 0]), "expected int32 (2, 2)"),
    ],
    ids=str,
)
def test_slots_that_do_not_fit_are_refused(
    hybrid: Program, slots: tuple[list[int], list[int]], message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        check_step(hybrid, BLOCKS, LIMITS, with_slots(*slots))


def test_slots_can_be_copied(hybrid: Program) -> None:
    step = with_slots([0, 1], [2, 3])
    inside, outside = (
        msgspec.structs.replace(step, copies=np.array([[1, 0, slot]], np.int32)) for slot in (3, 4)
    )
    check_step(hybrid, BLOCKS, LIMITS, inside)
    with pytest.raises(ValueError, match="in KV group 1 is out of range"):
        check_step(hybrid, BLOCKS, LIMITS, outside)


def test_blocks_that_left_the_window_may_be_absent(program: Program) -> None:
    full, window = np.array([[0, 1, 2, 3]], np.int32), np.array([[-1, -1, 2, 3]], np.int32)
    changes = {"token_ids": i32(5), "positions": i32(60), "row_offsets": i32(0, 1)}
    check_step(program, BLOCKS, LIMITS, make_step(**changes, block_tables=(full, window)))
    with pytest.raises(ValueError, match="KV group 0"):
        check_step(program, BLOCKS, LIMITS, make_step(**changes, block_tables=(window, full)))


def test_more_rows_than_the_stage_was_made_for_are_refused(program: Program) -> None:
    rows = {
        "token_ids": np.zeros(9, np.int32),
        "positions": np.arange(9, dtype=np.int32),
        "row_offsets": i32(0, 9),
    }
    with pytest.raises(ValueError, match="the step has 9 rows"):
        check_step(program, BLOCKS, LIMITS, make_step(**rows))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": i32(2, 1)}, "not ascending"),
        ({"rows": i32(1, 3)}, "rows reach"),
        ({"edit_offsets": i32(0, 0, 1)}, "edit_offsets"),
        ({"temperatures": np.zeros(2, np.float32)}, "temperatures must be above 0"),
        ({"targets": i32(131, -1)}, "targets reach"),
        ({"raw_top": 21}, "raw_top 21"),
        ({"masked": np.zeros(2, np.int32)}, "masked is int32"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_bad_selection_is_named(program: Program, changes: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_selection(program, LIMITS, make_step(), make_selection(**changes))


def make_draws(**changes: Any) -> Draws:
    """Return draws of a greedy row and a sampled one."""
    draws = Draws(
        kinds=np.array([1, 2], np.int8),
        table=np.array([[0.0] * 6, [1.0, 0.5, 3.0, 0.9, -2.0, -np.inf]]),
        seeds=np.zeros(2, np.uint64),
        positions=np.zeros(2, np.uint64),
        choices=np.zeros(2, np.uint64),
        token_only=np.ones(2, np.bool_),
    )
    return msgspec.structs.replace(draws, **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kinds": i32(1, 2)}, "kinds is int32"),
        ({"kinds": np.array([1, 3], np.int8)}, r"kinds reach 1\.\.3"),
        ({"table": np.ones((2, 5))}, "table is"),
        ({"table": np.array([[0.0] * 6, [1.0, 0.0, 3.0, 0.9, -2.0, -2.0]])}, "out of range"),
        ({"table": np.array([[0.0] * 6, [1.0, 1.0, 0.0, 0.9, -2.0, -2.0]])}, "out of range"),
        ({"table": np.array([[0.0] * 6, [1.0, 1.0, 3.0, 0.0, -2.0, -2.0]])}, "out of range"),
        ({"table": np.array([[0.0] * 6, [1.0, 1.0, 3.0, 0.9, -2.0, 0.1]])}, "out of range"),
        ({"seeds": np.zeros(1, np.uint64)}, "seeds is"),
        ({"positions": np.zeros(2, np.int64)}, "draw positions is"),
        ({"choices": np.zeros(2, np.int32)}, "choices is"),
        ({"token_only": np.zeros(1, np.bool_)}, "token_only is"),
        ({"kinds": np.array([0, 2], np.int8)}, "more than its token"),
    ],
)
def test_bad_draws_are_named(program: Program, changes: Mapping[str, Any], message: str) -> None:
    check_selection(program, LIMITS, make_step(), make_selection(draws=make_draws()))
    with pytest.raises(ValueError, match=message):
        check_selection(program, LIMITS, make_step(), make_selection(draws=make_draws(**changes)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"late": np.ones(3, np.bool_)}, "late is bool"),
        ({"late": np.array([False, True])}, "late rows have no edits"),
    ],
)
def test_late_rows_have_no_edits_yet(program: Program, changes: Mapping[str, Any], message: str) -> None:
    one = np.ones(1, np.float32)
    edited = make_selection(edit_offsets=i32(0, 0, 1), edit_ids=i32(3), edit_factors=one, edit_biases=one)
    check_selection(
        program, LIMITS, make_step(), msgspec.structs.replace(edited, late=np.array([True, False]))
    )
    with pytest.raises(ValueError, match=message):
        check_selection(program, LIMITS, make_step(), msgspec.structs.replace(edited, **changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"offsets": i32(0, 2, 2)}, "offsets is"),
        ({"offsets": i32(0, 1)}, "do not split 2 edits"),
        ({"ids": i32(3, 99)}, "ids reach"),
        ({"factors": np.ones(1, np.float32)}, "factors is"),
        ({"biases": np.ones(2)}, "biases is"),
    ],
)
def test_bad_late_edits_are_named(changes: Mapping[str, Any], message: str) -> None:
    selection, two = make_selection(late=np.array([False, True])), np.ones(2, np.float32)
    edits = LateEdits(offsets=i32(0, 2), ids=i32(3, 9), factors=two, biases=two)
    check_late_edits(99, selection, edits)
    with pytest.raises(ValueError, match=message):
        check_late_edits(99, selection, msgspec.structs.replace(edits, **changes))


@pytest.mark.parametrize(("first", "last"), [(0, 3), (3, 10)])
def test_only_a_stage_with_embedding_and_head_is_fed_from_its_own_ticket(first: int, last: int) -> None:
    part = lower(TinyModel().plan(), first, last, format_of=lambda _kind, _ref: "f32")
    check_step(part, BLOCKS, LIMITS, make_step())
    with pytest.raises(ValueError, match="only a stage with the embedding and the head"):
        check_step(part, BLOCKS, LIMITS, make_step(feed=Ticket(0)))


def test_edits_outside_the_vocabulary_are_refused(program: Program) -> None:
    one = np.ones(1, np.float32)
    edits = {"edit_offsets": i32(0, 1, 1), "edit_ids": i32(131), "edit_factors": one, "edit_biases": one}
    with pytest.raises(ValueError, match="edit_ids reach"):
        check_selection(program, LIMITS, make_step(), make_selection(**edits))


def test_more_outputs_than_the_stage_was_made_for_are_refused(program: Program) -> None:
    with pytest.raises(ValueError, match="4 output rows"):
        check_selection(program, LIMITS, make_step(), select_rows(i32(0, 1, 2, 3)))


def test_copies_of_a_group_whose_layers_are_elsewhere_are_no_concern_of_this_stage() -> None:
    plan = TinyModel().plan()
    program = lower(plan, 0, 3, format_of=lambda _kind, _ref: "f32")
    assert not program.groups[1].layers
    check_step(program, {0: 4}, LIMITS, make_step(copies=np.array([[1, 90, 91]], np.int32)))
    with pytest.raises(ValueError, match="in KV group 0 is out of range"):
        check_step(program, {0: 4}, LIMITS, make_step(copies=np.array([[0, 90, 91]], np.int32)))


def test_token_types_are_those_of_the_embedding_and_pass_later_stages_by() -> None:
    plan = TinyEncoder().plan()
    first, last = (lower(plan, a, b, format_of=lambda _kind, _ref: "f32") for a, b in ((0, 3), (3, 5)))
    no_tables = {"block_tables": (), "copies": np.zeros((0, 3), np.int32)}
    check_step(first, {}, LIMITS, make_step(**no_tables, token_types=i32(0, 1, 0)))
    with pytest.raises(ValueError, match="token_types reach"):
        check_step(first, {}, LIMITS, make_step(**no_tables, token_types=i32(0, 2, 0)))
    check_step(last, {}, LIMITS, make_step(**no_tables, token_types=i32(0, 1, 0)))


def test_every_op_that_a_device_lacks_is_named(program: Program) -> None:
    info = ReferenceDevice().info
    assert missing_ops(info, program) == []
    older = msgspec.structs.replace(info, ops=tuple(kind for kind in info.ops if kind not in {"rope", "glu"}))
    assert [refusal.what for refusal in missing_ops(older, program)] == ["op glu", "op rope"]


def test_activations_that_a_device_lacks_are_named_where_weights_are_integers(program: Program) -> None:
    info = msgspec.structs.replace(ReferenceDevice().info, activations=("int8",))
    plain = msgspec.structs.replace(program, activations="f32")
    assert missing_activations(info, plain) == []
    weights = (*program.weights, Weight(program.weights[0].ref, "q4"))
    integers = msgspec.structs.replace(plain, weights=weights)
    (refusal,) = missing_activations(info, integers)
    assert (refusal.what, refusal.reason) == (
        "activations as f32",
        "with weights in q4 the device computes with int8",
    )
    assert missing_activations(ReferenceDevice().info, integers) == []


def test_a_precision_that_a_device_lacks_is_named_whatever_the_weights_are(program: Program) -> None:
    info = msgspec.structs.replace(ReferenceDevice().info, precisions=("f32", "bf16"))
    assert missing_activations(info, msgspec.structs.replace(program, precision="bf16")) == []
    (refusal,) = missing_activations(info, msgspec.structs.replace(program, precision="f16"))
    assert (refusal.what, refusal.reason) == (
        "precision f16",
        "with plain weights, keys and values the device computes with f32, bf16",
    )


def test_a_feature_runs_only_on_devices_that_claim_it(program: Program) -> None:
    device = ReferenceDevice()
    needing = msgspec.structs.replace(program, needs=("of_tomorrow", "and_another"))
    assert refusals(device, needing) == missing_features(device.info, needing)
    assert missing_features(device.info, needing) == [
        Refusal("feature and_another", "the device does not support it"),
        Refusal("feature of_tomorrow", "the device does not support it"),
    ]
    device.info = msgspec.structs.replace(device.info, features=("of_tomorrow", "and_another", "unused"))
    assert refusals(device, needing) == []


@pytest.fixture
def integers() -> Program:
    """Return a program with all weights in an integer format."""
    plan = TinyModel(layers=1).plan()
    return lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "q4")


def test_integers_are_refused_where_an_op_reads_plain_numbers(integers: Program) -> None:
    info = ReferenceDevice().info
    vectors = {weight.ref.name for weight in integers.weights if len(weight.ref.shape) == 1}
    found = misplaced_integers(info, integers)
    assert {refusal.what for refusal in found} == {f"format q4 of {name}" for name in vectors}
    without_tables = msgspec.structs.replace(info, integer_ops=FACTOR_OPS)
    (table,) = set(misplaced_integers(without_tables, integers)) - set(found)
    assert table == Refusal("format q4 of embed", "embed reads it as plain numbers")


def test_all_refusals_are_told_at_once(program: Program, integers: Program) -> None:
    device = ReferenceDevice()
    assert refusals(device, program) == []
    device.info = msgspec.structs.replace(device.info, ops=(), activations=("f32",), formats=("f32",))
    assert {one.what for one in refusals(device, integers)} >= {
        "op embed",
        "activations as int8",
        "format q4 of norm",
        "format q4",
    }
