"""Products of rows in int8: the integers of the reference, and the same bits in any batch."""

from __future__ import annotations

import numpy as np
import pytest

from llmd.api import INTEGER_FORMATS, Format, Glu, Norm, SlottedOp
from llmd_backend_cuda.matrix_forms import CLAIMED_FORMATS
from llmd_backend_cuda.ops.linear import gated, products_of, rows_of
from tests.cuda.one_instruction import nmse
from tests.cuda.simulated import NEEDS_COMPILER
from tests.plugins.backend_cuda.ops.test_linear import FEW_FORMATS, MAX_NMSE, Bench, check_batches

pytestmark = NEEDS_COMPILER

EXACT_NMSE = 1e-13
"""Of sums in float32."""
ZERO_FORMATS = {"q4_g32_sym", "q3_k", "q8_row"}
"""Integers with a zero, in groups of 32 and 16 columns, and one scale for a row."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(f, marks=() if f in FEW_FORMATS | ZERO_FORMATS else pytest.mark.exhaustive)
        for f in CLAIMED_FORMATS
        if f in INTEGER_FORMATS
    ],
)
def test_rows_in_int8_are_multiplied_exactly(name: Format) -> None:
    """Integers are summed exactly: only float32 sums of groups differ from the reference."""
    width = 512 if INTEGER_FORMATS[name].coarse_size else 160
    bench = Bench(width, (name, 40), activations="int8")
    product = bench.product()
    bench.run(product, 20)
    rows = bench.read(2, 20)
    assert nmse(rows, bench.expected(20)) < EXACT_NMSE
    bench.run(product, 3)
    np.testing.assert_array_equal(bench.read(2, 3), rows[:3])


@pytest.mark.parametrize(
    ("name", "processors"),
    [
        *(("q4_g32", 1), ("q4_g32", 100), ("q2_k", 100), ("q4", 100)),
        *(pytest.param(name, 1, marks=pytest.mark.exhaustive) for name in ("q8_g128", "q2_k", "q4")),
        pytest.param("q8_g128", 100, marks=pytest.mark.exhaustive),
    ],
)
def test_int8_rows_have_the_same_bits_in_any_batch(name: Format, processors: int) -> None:
    """Slices begin within groups."""
    bench = Bench(1280, (name, 272), num_processors=processors, activations="int8")
    check_batches(bench, EXACT_NMSE)
    assert {"round_rows_int8", "gemv", "gemm"} <= set(bench.card.launched)
    assert "round_rows" not in bench.card.launched


def test_rows_of_zeros_and_of_very_unequal_columns_in_int8() -> None:
    bench = Bench(256, ("q4_g64", 40), activations="int8")
    bench.x[0] = 0
    bench.x[1, :64] = 0
    bench.x[2, ::7] *= 1e4
    bench.card.upload(bench.slots[0], 0, bench.x)
    for rows in (3, 9):
        bench.run(bench.product(), rows)
        assert nmse(bench.read(2, rows), bench.expected(rows)) < EXACT_NMSE
        np.testing.assert_array_equal(bench.read(2, rows)[0], 0)


def test_only_integer_formats_have_rows_in_int8() -> None:
    bench = Bench(96, ("f16", 40), ("q4_g32", 56), ("fp8", 24), activations="int8")
    op = bench.linear((0, None), (1, None), (2, None))
    plain, integers, numbers = products_of(bench.context, op, rows_of(bench.context, 0))
    assert (plain.int8, integers.int8, numbers.int8) == (False, True, False)
    for product in (plain, integers):
        bench.run(product, 20)
    assert nmse(bench.read(2, 20), bench.expected(20)) < MAX_NMSE
    assert nmse(bench.read(3, 20), bench.expected(20, 1)) < EXACT_NMSE


@pytest.mark.parametrize("name", ["q4_g32", "q6_k", "q4_k"])
def test_gates_and_norms_have_rows_in_int8(name: Format) -> None:
    """A gated product of normed rows has the bits of the products without a gate, on many rows too."""
    bench = Bench(256, (name, 40), (name, 40), activations="int8")
    norm = SlottedOp(Norm("x", "n", None, 1e-3), (0,), (1,), (None, None))
    op = bench.linear((0, None), (1, 1))
    rows = {}
    for count in (3, 20):
        (product,) = products_of(bench.context, op, rows_of(bench.context, 0, norm))
        bench.run(product, count)
        rows[count] = bench.read(2, count), bench.read(3, count)
    for few, many in zip(rows[3], rows[20], strict=True):
        np.testing.assert_array_equal(few, many[:3])
    glu = SlottedOp(Glu("a", "b", "c", "relu", 0.5), (2, 3), (4,))
    bench.run(gated(bench.context, product, glu), 3)
    gate, up = rows[3]
    np.testing.assert_array_equal(bench.read(4, 3), np.where(gate > 0.5, gate, 0) * up)
