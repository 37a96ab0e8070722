"""The arrays of a step are packed at fixed places."""

from __future__ import annotations

import msgspec
import numpy as np

from llmd.api import Program, Rope, StageLimits, Step
from llmd.builtin.architectures import deepseek_v4
from llmd.models.lowering import lower
from llmd.testing.adapter_cases import adapted_model
from llmd.testing.plans import TinyModel
from llmd_backend_vulkan.step_memory import (
    StepLayout,
    last_seen,
    pack_step,
    rope_name,
    rotations,
    table_name,
)
from tests.golden.models.catalog import tiny_model

LIMITS = StageLimits(max_rows=40, max_sequences=3, max_outputs=5)


def program() -> Program:
    """Return the small model with states."""
    plan = TinyModel(hybrid=True).plan()
    return lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32", activations="f32")


def make_step() -> Step:
    """Return a step of two sequences, one of them at its start."""
    positions = np.array([0, 1, 30], np.int32)
    tables = (np.array([[4, -1], [2, 7]], np.int32),) * 2
    return Step(
        token_ids=np.array([5, 6, 7], np.int32),
        positions=positions,
        row_offsets=np.array([0, 2, 3], np.int32),
        block_tables=(*tables, np.array([[-1, 0], [3, 1]], np.int32)),
        copies=np.zeros((0, 3), np.int32),
    )


def test_arrays_do_not_overlap_and_large_steps_have_room() -> None:
    small, large = (StepLayout.of(program(), LIMITS, bucket) for bucket in (4, 40))
    assert small.end < large.end
    assert small.places["output_rows"] == large.places["output_rows"]
    places = sorted(small.places.values())
    assert len(set(places)) == len(places)


def test_a_step_is_packed() -> None:
    of, step = program(), make_step()
    layout = StepLayout.of(of, LIMITS, 4)
    out = np.full(layout.end, 9, np.uint32)
    pack_step(out, layout, of, step, None)
    at = layout.places
    assert out[:4].tolist() == [3, 2, 0, layout.tables + 12]
    assert out[at["token_ids"] :][:3].tolist() == [5, 6, 7]
    assert out[at["sequences"] :][:3].tolist() == [0, 0, 1]
    assert out[at["token_types"] :][:3].tolist() == [0, 0, 0]
    assert out[at["row_offsets"] :][:3].tolist() == [0, 2, 3]
    assert table_of(out, at[table_name(0)], 2) == [[4, 0xFFFFFFFF], [2, 7]]
    assert table_of(out, at[table_name(2)], 2) == [[0xFFFFFFFF, 0], [3, 1]]


def test_rows_with_adapters_are_packed_by_adapter() -> None:
    plan = adapted_model()
    of = lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32", activations="f32")
    layout = StepLayout.of(of, LIMITS, 4)
    out = np.full(layout.end, 9, np.uint32)
    step = msgspec.structs.replace(make_step(), adapters=np.array([1, 0], np.int32))
    pack_step(out, layout, of, step, None)
    items = out[layout.places["adapters"] :]
    assert layout.most_items == 2
    assert items[:11].tolist() == [0, 0, 1, 0, 1, 1, 2, 0, 2, 0, 1]
    assert "adapters" not in StepLayout.of(program(), LIMITS, 4).places


def table_of(out: np.ndarray, description: int, sequences: int) -> list[list[int]]:
    """Return the block table that a description leads to."""
    distance, width = out[description : description + 2].tolist()
    first = description + distance
    rows: list[list[int]] = out[first : first + sequences * width].reshape(sequences, width).tolist()
    return rows


def test_a_step_takes_tables_of_its_own_width() -> None:
    of, wide = program(), np.arange(2 * 16, dtype=np.int32).reshape(2, 16)[:, ::2]
    narrow = make_step()
    step = msgspec.structs.replace(
        narrow, block_tables=(wide, narrow.block_tables[1], narrow.block_tables[2])
    )
    layout = StepLayout.of(of, LIMITS, 4)
    out = np.full(layout.end, 9, np.uint32)
    pack_step(out, layout, of, step, None)
    assert table_of(out, layout.places[table_name(0)], 2) == wide.tolist()
    assert table_of(out, layout.places[table_name(1)], 2) == [[4, 0xFFFFFFFF], [2, 7]]
    assert out[3] == layout.tables + 2 * (8 + 2 + 2)
    assert np.all(out[out[3] :] == 9)


def test_rows_see_vectors_whose_last_token_they_have_reached() -> None:
    positions = np.array([0, 2, 3, 4, 7, 127, 128], np.int32)
    assert last_seen(positions, 1).tolist() == positions.tolist()
    assert last_seen(positions, 4).tolist() == [-1, -1, 0, 0, 1, 31, 31]
    assert last_seen(positions, 128).tolist() == [-1] * 5 + [0, 0]


def test_what_rows_see_and_how_they_turn_is_packed_for_each_stride() -> None:
    plan = deepseek_v4.plan(tiny_model("deepseek-v4").config, 1000)
    of = lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32", activations="f32")
    layout = StepLayout.of(of, LIMITS, 4)
    out = np.full(layout.end, 9, np.uint32)
    tables = tuple(np.array([[4, -1], [2, 7]], np.int32) for _ in of.groups)
    pack_step(out, layout, of, msgspec.structs.replace(make_step(), block_tables=tables), None)
    at = layout.places
    assert out[at["seen 4"] :][:3].view(np.int32).tolist() == [-1, -1, 6]
    assert out[at["seen 16"] :][:3].view(np.int32).tolist() == [-1, -1, 0]
    (rope,) = {one.rope for one in of.ops if isinstance(one.op, Rope) and one.op.stride == 16}
    assert rope is not None
    for stride, positions in ((1, [0, 1, 30]), (4, [0, 0, 28]), (16, [0, 0, 16])):
        table = of.ropes[rope]
        turned = rotations(table.inv_freq, table.factor, np.array(positions, np.int32))
        packed = out[at[rope_name(rope, stride)] :][: turned.size].view(np.float32)
        np.testing.assert_array_equal(packed, turned.reshape(-1))


def test_block_tables_have_room_for_the_blocks_of_a_context() -> None:
    plan = deepseek_v4.plan(tiny_model("deepseek-v4-odd").config, 1000)
    of = lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32", activations="f32")
    layout = StepLayout.of(of, LIMITS, 4)
    widths = [-(-1000 // group.block_tokens) for group in of.groups if group.layers]
    assert {group.block_tokens for group in of.groups} == {16, 32}
    assert layout.end - layout.tables == 3 * sum(widths)


def test_joined_texts_have_their_types() -> None:
    of = program()
    step = msgspec.structs.replace(make_step(), token_types=np.array([0, 1, 1], np.int32))
    layout = StepLayout.of(of, LIMITS, 4)
    out = np.zeros(layout.end, np.uint32)
    pack_step(out, layout, of, step, None)
    assert out[layout.places["token_types"] :][:3].tolist() == [0, 1, 1]


def test_rotations_are_exact_at_high_positions() -> None:
    turned = rotations((1.0, 0.001), 2.0, np.array([100_003], np.int32))
    assert turned.shape == (1, 2, 2)
    assert turned[0, 0, 0] == np.float32(2.0 * np.cos(100_003.0))
    assert turned[0, 1, 1] == np.float32(2.0 * np.sin(100_003.0 * 0.001))


def test_elements_without_a_frequency_do_not_turn() -> None:
    turned = rotations((0.0, 0.5, 0.0), 2.0, np.array([3, 100_003], np.int32))
    assert turned[:, [0, 2]].tolist() == [[[2.0, 0.0]] * 2] * 2
    np.testing.assert_array_equal(turned[:, 1:2], rotations((0.5,), 2.0, np.array([3, 100_003], np.int32)))
