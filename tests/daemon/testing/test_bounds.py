"""The bounds accept devices that round at other places than the reference, and no wrong sum."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api import KV_DTYPES, PRECISIONS, Precision
from llmd.testing.bounds import MAX_NMSE
from llmd.testing.conformance import all_cases, cases_for, check_device
from tests.rounding_device import Fault, RoundingDevice

FEW = (
    *("norm/rms", "linear/f32", "linear/bf16", "linear/q4", "linear/q6_k", "head/plain", "head/q4"),
    *("attention/gqa-f16", "attention/gqa-int8", "attention/gqa-int4", "encoder_attention/4x12"),
    *("part/layers.1.mixer", "part/layers.1.ffn"),
    *("program/window-f16", "program/window-q8", "program/encoder-f32", "program/q4"),
)


def problems(device: RoundingDevice, names: tuple[str, ...]) -> list[str]:
    """Return the failures of the device, in the named cases as it runs them."""
    chosen = cases_for(device.info, tuple(case for case in all_cases() if case.name in names))
    assert chosen
    return [f"{result.name}: {result.problem}" for result in check_device(device, chosen) if result.problem]


def test_there_is_a_bound_for_each_precision_and_kv_dtype_and_it_grows_with_both() -> None:
    assert tuple(MAX_NMSE) == PRECISIONS
    for by_kv_dtype in MAX_NMSE.values():
        assert tuple(by_kv_dtype) == KV_DTYPES
        assert all(bounds.part <= bounds.program for bounds in by_kv_dtype.values())
    for exact, f16, bf16 in zip(*(bounds.values() for bounds in MAX_NMSE.values()), strict=True):
        assert exact.part < f16.part < bf16.part
        assert exact.program < f16.program < bf16.program


def test_the_page_on_ops_has_the_bounds() -> None:
    page = (Path(__file__).parents[3] / "docs" / "ops.md").read_text()
    for precision, by_kv_dtype in MAX_NMSE.items():
        pairs = (f"{bounds.part:.0e}, {bounds.program:.0e}" for bounds in by_kv_dtype.values())
        assert f"| {precision} | {' | '.join(pairs)} |" in page


@pytest.mark.parametrize("precision", ["f16", "bf16"])
@pytest.mark.parametrize("int8", [False, True], ids=["", "int8 activations"])
def test_a_device_passes_that_rounds_at_other_places_and_sums_in_another_order(
    precision: Precision, *, int8: bool
) -> None:
    assert problems(RoundingDevice(precision, int8=int8), FEW) == []


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
@pytest.mark.parametrize("precision", ["f16", "bf16"])
@pytest.mark.parametrize("int8", [False, True], ids=["", "int8 activations"])
def test_such_a_device_passes_every_case(precision: Precision, *, int8: bool) -> None:
    device = RoundingDevice(precision, kv_dtypes=KV_DTYPES, int8=int8)
    assert [result for result in check_device(device) if result.problem] == []


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        ("plain linear", "linear/f32"),
        ("integer linear", "linear/q4"),
        ("head", "head/plain"),
        ("attention", "attention/gqa-f16"),
        ("encoder_attention", "encoder_attention/4x12"),
        ("scale", "attention/gqa-f16"),
        ("row", "linear/f32"),
    ],
)
@pytest.mark.parametrize("precision", ["f16", "bf16"])
def test_a_missing_product_a_wrong_scale_and_a_wrong_row_are_found(
    precision: Precision, fault: Fault, name: str
) -> None:
    assert problems(RoundingDevice(precision), (name,)) == []
    (found,) = problems(RoundingDevice(precision, fault=fault), (name,))
    assert "NMSE" in found
