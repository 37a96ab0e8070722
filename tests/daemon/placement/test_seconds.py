from __future__ import annotations

import pytest
from msgspec import structs

from llmd.api.device import DeviceProfile
from llmd.placement.seconds import Rows, nearest_measured, step_seconds
from llmd.placement.work import ExpertWeights, Span, Weights, Work

PROFILE = DeviceProfile(
    read_bytes_per_s=100.0,
    decode_bytes_per_s={"f16": 100.0, "q8": 80.0, "q4": 50.0},
    prefill_flops_per_s={"f16": {16: 640.0, 128: 2560.0}, "q8": {}, "q4": {16: 1.0}},
    kv_bytes_per_s=40.0,
    attention_flops_per_s=1000.0,
    step_s=7.0,
    part_s=0.25,
    copy_bytes_per_s=1.0,
)
NOTHING = Work(0, {}, {}, (), 0)
ONE_ROW = Rows(sequences=1, rows=1, length=10)


def seconds(work: Work, rows: Rows = ONE_ROW) -> float:
    return step_seconds(work, PROFILE, rows)


def product(rows: int, name: str = "f16", elements: int = 100) -> float:
    weights = {name: Weights(2 * elements, elements)}
    return seconds(structs.replace(NOTHING, layers=weights), Rows(1, rows, rows))


def test_each_part_has_its_fixed_cost_and_the_step_is_left_out() -> None:
    assert seconds(structs.replace(NOTHING, num_parts=3)) == 0.75


def test_one_row_reads_the_weights() -> None:
    assert product(1) == 2.0
    assert product(1, "q8") == 2.5


def test_many_rows_take_what_was_measured_and_a_share_between() -> None:
    assert product(16) == 2 * 16 * 100 / 640
    assert product(128) == 2 * 128 * 100 / 2560
    assert product(72) == pytest.approx((product(16) + product(128)) / 2)


def test_more_rows_than_measured_take_time_in_proportion() -> None:
    assert product(256) == pytest.approx(2 * product(128))
    assert product(10, "q8") == pytest.approx(10 * product(1, "q8"))


def test_experts_take_the_time_of_those_that_rows_use() -> None:
    whole = ExpertWeights("f16", Weights(800, 400), num_experts=4, top_k=1)
    work = structs.replace(NOTHING, experts=(whole,))
    assert seconds(work) == product(1, elements=100)
    all_of_them = ExpertWeights("f16", Weights(200, 100), num_experts=4, top_k=4)
    rows = Rows(1, 72, 72)
    assert seconds(structs.replace(NOTHING, experts=(all_of_them,)), rows) == product(72)
    # 64 rows use all experts, and each expert has about 16 of them.
    assert seconds(work, Rows(1, 64, 64)) == pytest.approx(product(16, elements=400), rel=1e-6)


def test_more_rows_never_take_less_time() -> None:
    quick = structs.replace(PROFILE, prefill_flops_per_s={"f16": {16: 1e9}})
    work = structs.replace(NOTHING, layers={"f16": Weights(200, 100)})
    assert step_seconds(work, quick, Rows(1, 16, 16)) == step_seconds(work, quick, ONE_ROW) == 2.0


@pytest.mark.parametrize(
    ("name", "measured"),
    [
        ("f16", "f16"),
        ("bf16", "f16"),
        ("f32", "f16"),
        ("q8_0", "q8"),
        ("q6_k", "q8"),
        ("q5_0", "q4"),
        ("iq4_nl", "q4"),
        ("q2", "q4"),
    ],
)
def test_other_formats_are_as_fast_as_the_measured_one_of_about_as_many_bits(
    name: str, measured: str
) -> None:
    assert nearest_measured(name, PROFILE) == measured


def test_the_head_multiplies_one_row_of_each_sequence() -> None:
    work = structs.replace(NOTHING, head={"f16": Weights(200, 100)})
    assert seconds(work, Rows(1, 256, 256)) == product(1)
    assert seconds(work, Rows(16, 1, 100)) == product(16)


def test_one_row_reads_keys_and_values_up_to_the_window() -> None:
    work = structs.replace(NOTHING, spans=(Span(None, 8, 1), Span(5, 4, 1)))
    assert seconds(work) == (8 * 10 + 4 * 5) / 40
    assert seconds(work, Rows(3, 1, 10)) == pytest.approx(3 * seconds(work))


def test_many_rows_compute_with_all_positions_before_them() -> None:
    work = structs.replace(NOTHING, spans=(Span(None, 0, 100),))
    assert seconds(work, Rows(1, 4, 10)) == pytest.approx(100 * (7 + 8 + 9 + 10) / 1000)
    windowed = structs.replace(NOTHING, spans=(Span(5, 0, 100),))
    assert seconds(windowed, Rows(1, 4, 10)) == pytest.approx(100 * 4 * 5 / 1000)


def test_states_are_read_once_for_each_sequence() -> None:
    work = structs.replace(NOTHING, state_bytes=20)
    assert seconds(work, Rows(2, 100, 100)) == 2 * 20 / 40
