"""Products of rows and matrices, in every format, as few rows and as many."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from llmd.api import (
    INTEGER_FORMATS,
    Format,
    Glu,
    Head,
    Linear,
    Norm,
    SlottedOp,
    StageLimits,
    TensorRef,
    Weight,
)
from llmd.api.program import ActivationDtype, Program
from llmd.api.step import Float32
from llmd.builtin.reference.weights import make_matrix
from llmd.testing.sources import RandomSource
from llmd_backend_cuda.context import Context, StepArgs
from llmd_backend_cuda.matrices import DeviceMatrix, load_matrix
from llmd_backend_cuda.matrix_forms import CLAIMED_FORMATS
from llmd_backend_cuda.ops.fastest import FEW_ROWS, Fastest
from llmd_backend_cuda.ops.gemm_tiles import WarpgroupTile, WarpTile, warpgroup_tiles
from llmd_backend_cuda.ops.linear import (
    Product,
    gated,
    head_product,
    is_few,
    launch_product,
    partial_bytes,
    products_of,
    rounded_bytes,
    rows_of,
    tiled_launches,
    with_residual,
)
from llmd_backend_cuda.ops.product_args import MATRICES, OutputArgs, RowsArgs
from llmd_backend_cuda.runtime import Launch, Memory
from tests.cuda.one_instruction import nmse, random_rows, upload
from tests.cuda.simulated import NEEDS_COMPILER, SimulatedCard, contents

pytestmark = NEEDS_COMPILER

MAX_NMSE = 3e-6
MAX_ROWS = 130
LIMITS = StageLimits(MAX_ROWS, 1, 1)
FEW_FORMATS = {"f32", "bf16", "q8", "q6_k", "q5_1", "q3_g64", "q2_k", "iq4_nl", "mxfp4", "q4", "q4_k", "fp8"}
"""Each width of codes, with and without minimums; numbers of 8 bits."""


class Bench:
    """Slots, matrices and vectors on the simulated card.

    Slots 0 and 1 have random rows, the others nothing; ``matrices`` are (format, outputs).
    """

    def __init__(
        self,
        width: int,
        *matrices: tuple[Format, int],
        limits: StageLimits = LIMITS,
        num_processors: int = 4,
        card: SimulatedCard | None = None,
        activations: ActivationDtype = "f16",
    ) -> None:
        self.activations: ActivationDtype = activations
        self.card = card or SimulatedCard(num_processors=num_processors)
        self.limits = limits
        self.width = width
        weights = [Weight(TensorRef(f"w{i}", (out, width)), name) for i, (name, out) in enumerate(matrices)]
        self.data = [RandomSource().read(weight) for weight in weights]
        self.loaded: list[DeviceMatrix | None] = [load_matrix(self.card, data) for data in self.data]
        outs = [out for _, out in matrices]
        self.vectors: list[Float32] = [random_rows(1, out, seed)[0] for seed, out in enumerate(outs)]
        memories: list[Memory | None] = [upload(self.card, vector) for vector in self.vectors]
        self.widths = (width, outs[0], *outs, outs[0])
        self.x = random_rows(limits.max_rows, width, 1)
        self.added = random_rows(limits.max_rows, outs[0], 2)
        self.slots = [self.card.allocate(4 * limits.max_rows * size) for size in self.widths]
        self.card.upload(self.slots[0], 0, self.x)
        self.card.upload(self.slots[1], 0, self.added)
        program = Program(
            0,
            1,
            width,
            outs[0],
            64,
            (),
            (),
            self.widths,
            tuple(weights),
            (),
            None,
            None,
            activations=activations,
            precision="f16",
        )
        self.context = Context(
            self.card,
            program,
            limits,
            StepArgs(),
            self.slots,
            [*memories, *([None] * len(memories))],
            (),
            [*self.loaded, *([None] * len(memories))],
            rounded=self.card.allocate(rounded_bytes(program, limits)),
            partials=self.card.allocate(partial_bytes(limits, num_processors)),
        )

    def run(self, product: Product, rows: int) -> None:
        for launch in launch_product(self.context, product, rows):
            self.card.launch(launch)

    def read(self, slot: int, rows: int) -> Float32:
        found: Float32 = contents(self.card, self.slots[slot], np.float32, 0, rows * self.widths[slot])  # type: ignore[assignment]
        return found.reshape(rows, -1)

    def product(self, x: int = 0, first: int = 0) -> Product:
        """Return rows of a slot, from one on, times the first matrix, in slot 2."""
        matrix = self.loaded[0]
        assert matrix is not None
        rows = RowsArgs(x=self.slots[x].pointer + 4 * first * self.width, width=self.width)
        out = OutputArgs(out=self.slots[2].pointer, scale=1.0, width=matrix.size.out, tiles=matrix.size.tiles)
        int8 = self.activations == "int8" and self.data[0].format in INTEGER_FORMATS
        return Product(rows, [out], [matrix], int8=int8)

    def expected(self, rows: int, matrix: int = 0, x: Float32 | None = None) -> Float32:
        """Return the reference's product."""
        made = make_matrix(self.data[matrix], self.activations, "f16")
        return np.stack([made.multiply(row) for row in (self.x if x is None else x)[:rows]]).astype(
            np.float32
        )

    def linear(self, *weights: tuple[int, int | None]) -> SlottedOp:
        """Return a linear op of slot 0; ``weights`` are (matrix, bias), the outputs slots from 2 on."""
        refs = tuple(TensorRef(f"w{index}", (1, 1)) for index, _ in weights)
        op = Linear("x", tuple(f"o{index}" for index, _ in weights), refs, (None,) * len(refs))
        flat = tuple(index for pair in weights for index in pair)
        return SlottedOp(op, (0,), tuple(2 + index for index, _ in weights), flat)


# Formats, and the same bits in any batch


def check_batches(bench: Bench, max_nmse: float) -> None:
    """Check that 130 rows times the first matrix are right, and that some have the same bits alone."""
    bench.run(bench.product(), 130)
    rows = bench.read(2, 130)
    assert nmse(rows, bench.expected(130)) < max_nmse
    for count, first in ((1, 0), (1, 129), (8, 3), (9, 100), (17, 0), (50, 70), (66, 30)):
        bench.run(bench.product(first=first), count)
        np.testing.assert_array_equal(bench.read(2, count), rows[first : first + count])


@pytest.mark.parametrize(
    "name",
    [pytest.param(f, marks=() if f in FEW_FORMATS else pytest.mark.exhaustive) for f in CLAIMED_FORMATS],
)
def test_each_format_is_decoded(name: Format) -> None:
    width = 256 if name in INTEGER_FORMATS and INTEGER_FORMATS[name].coarse_size else 160
    bench = Bench(width, (name, 40))
    bench.run(bench.product(), 3)
    assert nmse(bench.read(2, 3), bench.expected(3)) < MAX_NMSE


def test_the_few_formats_have_codes_of_all_widths() -> None:
    widths = {INTEGER_FORMATS[name].bits for name in CLAIMED_FORMATS if name in INTEGER_FORMATS}
    assert {INTEGER_FORMATS[name].bits for name in FEW_FORMATS if name in INTEGER_FORMATS} | {4} == widths


@pytest.mark.parametrize("processors", [1, 100])
@pytest.mark.parametrize("name", ["f16", pytest.param("q8_g128", marks=pytest.mark.exhaustive), "q4_g32"])
def test_rows_have_the_same_bits_in_any_batch(name: Format, processors: int) -> None:
    """A card with many processors splits the products of few rows."""
    bench = Bench(1100, (name, 272), num_processors=processors)
    check_batches(bench, MAX_NMSE)
    assert ("add_slices" in bench.card.launched) == (processors == 100)


@pytest.mark.parametrize("shared_bytes", [64 << 10, 99 << 10])
def test_a_card_with_less_shared_memory_takes_fewer_rows_at_a_time(shared_bytes: int) -> None:
    """Those of compute capability 7.5, 8.6, 8.9 and 12.0; the rows have the same bits."""
    rows = []
    for size in (227 << 10, shared_bytes):
        bench = Bench(300, ("q8_g128", 144), num_processors=1)
        bench.card.shared_bytes = size
        launches = list(launch_product(bench.context, bench.product(), 130))
        assert all(launch.shared_bytes <= size for launch in launches)
        bench.run(bench.product(), 130)
        rows.append(bench.read(2, 130))
    np.testing.assert_array_equal(rows[0], rows[1])


def test_measured_variants_are_launched_where_a_card_can_use_them() -> None:
    bench = Bench(300, ("q8_g128", 272), num_processors=4)
    product = bench.product()
    bench.run(product, 130)
    rows = bench.read(2, 130)
    fastest: Fastest = {
        (product.shape, 8): 1,
        (product.shape, 32): WarpTile(16, split=False),
        (product.shape, 512): WarpTile(128, split=True),
    }
    context = msgspec.structs.replace(bench.context, fastest=fastest)

    def launches(count: int) -> list[Launch]:
        return list(launch_product(context, product, count))

    assert launches(1)[0].grid == (4, 1, 1)
    assert launches(20)[1].grid == (2, 3, 1)
    assert [launch.kernel.spec.name for launch in launches(100)] == ["round_rows", "gemm", "add_slices"]
    assert len(launches(130)) == 2, "there is no memory for the sums of two blocks of rows"
    for count in (1, 20, 100, 130):
        for launch in launches(count):
            bench.card.launch(launch)
        np.testing.assert_array_equal(bench.read(2, count), rows[:count])


SMALL = WarpgroupTile(2, 64, 2, 2)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(f, marks=() if f == "q8_g128" else pytest.mark.exhaustive)
        for f in sorted(FEW_FORMATS | {"q8_g128"})
    ],
)
def test_products_of_warpgroups_have_the_same_bits(name: Format) -> None:
    """All tiles of a format, but in one case; slices of one and two chunks, and a block with few weights."""
    bench = Bench(768, (name, 136), num_processors=1)
    matrix = bench.loaded[0]
    assert matrix is not None
    rows = 66
    bench.run(bench.product(), rows)
    expected = bench.read(2, rows)
    assert "gemm" in bench.card.launched
    for tile in [SMALL] if name == "q8_g128" else warpgroup_tiles(matrix.size.form):
        bench.card.fill_zero(bench.slots[2])
        for launch in tiled_launches(bench.context, bench.product(), rows, tile):
            bench.card.launch(launch)
        np.testing.assert_array_equal(bench.read(2, rows), expected)
    assert "gemm_warpgroup" in bench.card.launched


@pytest.mark.exhaustive
def test_warpgroups_multiply_several_matrices_of_few_columns() -> None:
    """Slices without columns, and matrices that do not fill a block."""
    bench = Bench(96, ("q4_g32", 40), ("q4_g32", 150), num_processors=1)
    (product,) = products_of(bench.context, bench.linear((0, 0), (1, None)), rows_of(bench.context, 0))
    bench.run(product, MAX_ROWS)
    expected = [bench.read(2 + index, MAX_ROWS) for index in range(2)]
    bench.card.warpgroups = True
    bench.run(product, MAX_ROWS)
    assert bench.card.launched[-1] == "gemm_warpgroup"
    for index in range(2):
        np.testing.assert_array_equal(bench.read(2 + index, MAX_ROWS), expected[index])


def test_few_rows_that_are_very_wide_are_multiplied_as_many_are() -> None:
    """They do not fit into the shared memory of a block."""
    bench = Bench(12000, ("f16", 20), limits=StageLimits(8, 1, 1))
    product = bench.product()
    assert is_few(product, 4, 227 << 10)
    assert not is_few(product, 5, 227 << 10)
    bench.run(product, 8)
    rows = bench.read(2, 8)
    assert nmse(rows, bench.expected(8)) < MAX_NMSE
    assert "gemm" in bench.card.launched
    bench.run(product, 1)
    np.testing.assert_array_equal(bench.read(2, 1), rows[:1])


# What precedes and follows a product


def test_rows_are_normed_on_the_way() -> None:
    for rows in (3, 20):
        bench = Bench(72, ("f16", 40))
        gain = upload(bench.card, random_rows(1, 72, 9))
        bench.context.vectors[0] = gain  # type: ignore[index]
        norm = SlottedOp(Norm("x", "n", TensorRef("g", (72,)), 1e-3, offset=0.5), (0,), (1,), (0, None))
        (product,) = products_of(bench.context, bench.linear((0, None)), rows_of(bench.context, 0, norm))
        bench.run(product, rows)
        x = bench.x[:rows].astype(np.float64)
        normed = x / np.sqrt(np.mean(x**2, axis=1, keepdims=True) + 1e-3) * (0.5 + random_rows(1, 72, 9))
        expected = bench.expected(rows, x=normed.astype(np.float32))
        assert nmse(bench.read(2, rows), expected) < MAX_NMSE


@pytest.mark.parametrize("rows", [3, 20])
def test_a_product_is_scaled_and_added_to_a_residual(rows: int) -> None:
    bench = Bench(72, ("f16", 40))
    (product,) = products_of(bench.context, bench.linear((0, 0)), rows_of(bench.context, 0))
    bench.run(with_residual(bench.context, product, 1, 3, 0.25), rows)
    expected = bench.added[:rows] + 0.25 * (bench.expected(rows) + bench.vectors[0])
    assert nmse(bench.read(3, rows), expected) < MAX_NMSE


def test_gates_are_applied_to_few_rows() -> None:
    bench = Bench(72, ("q4_g32", 40), ("q4_g32", 40))
    (product,) = products_of(bench.context, bench.linear((0, None), (1, 1)), rows_of(bench.context, 0))
    glu = SlottedOp(Glu("a", "b", "c", "relu", 0.5), (2, 3), (4,))
    bench.run(gated(bench.context, product, glu), 3)
    gate, up = bench.expected(3), bench.expected(3, 1) + bench.vectors[1]
    assert nmse(bench.read(4, 3), np.where(gate > 0.5, gate, 0) * up) < MAX_NMSE
    with pytest.raises(AssertionError, match="pairs are for few rows"):
        bench.run(gated(bench.context, product, glu), FEW_ROWS + 1)


@pytest.mark.parametrize("softcap", [None, 4.0])
def test_the_head_multiplies_chosen_rows(softcap: float | None) -> None:
    bench = Bench(72, ("f16", 90), limits=StageLimits(12, 1, 40))
    for chosen in ([11, 0, 5], [i % 12 for i in range(40)]):
        rows = upload(bench.card, np.array(chosen, np.int32))
        context = msgspec.structs.replace(bench.context, step=StepArgs(output_rows=rows.pointer))
        head = SlottedOp(Head("x", TensorRef("w0", (90, 72)), scale=0.25, softcap=softcap), (0,), (), (0, 0))
        logits = bench.card.allocate(4 * 40 * 90)
        bench.run(head_product(context, head, logits.pointer), len(chosen))
        expected = 0.25 * bench.expected(12)[chosen] + bench.vectors[0]
        if softcap:
            expected = softcap * np.tanh(expected / softcap)
        found = contents(bench.card, logits, np.float32, 0, len(chosen) * 90)
        assert nmse(found.reshape(-1, 90), expected) < MAX_NMSE  # type: ignore[arg-type]


# Several matrices


@pytest.mark.parametrize("rows", [3, 20])
def test_matrices_of_one_form_are_one_product_and_others_are_not(rows: int) -> None:
    bench = Bench(96, ("f16", 40), ("f32", 24), ("q4_g32", 56), ("q4_g32", 8))
    op = bench.linear((0, 0), (1, None), (2, 2), (3, None))
    products = products_of(bench.context, op, rows_of(bench.context, 0))
    assert [len(product.matrices) for product in products] == [2, 2]
    for product in products:
        bench.run(product, rows)
    for index in range(4):
        expected = bench.expected(rows, index) + (bench.vectors[index] if index in {0, 2} else 0)
        assert nmse(bench.read(2 + index, rows), expected) < MAX_NMSE


def test_a_product_has_at_most_four_matrices() -> None:
    bench = Bench(64, *[("f16", 16 + index) for index in range(2 * MATRICES + 1)])
    op = bench.linear(*[(index, None) for index in range(2 * MATRICES + 1)])
    products = products_of(bench.context, op, rows_of(bench.context, 0))
    assert [len(product.matrices) for product in products] == [4, 4, 1]
    assert [len(product.outputs) for product in products] == [4, 4, 1]
    assert [output.width for product in products for output in product.outputs] == list(range(16, 25))
    for product in products:
        bench.run(product, 2)
    assert all(nmse(bench.read(2 + index, 2), bench.expected(2, index)) < MAX_NMSE for index in range(9))


# Scratch


def test_more_output_rows_than_rows_have_scratch() -> None:
    few, many = StageLimits(4, 1, 4), StageLimits(4, 1, 50)
    program = Bench(72, ("f16", 40)).context.program
    assert rounded_bytes(program, few) == 2 * 4 * 128
    assert rounded_bytes(program, many) == 2 * 50 * 128
    assert partial_bytes(few, 10) < partial_bytes(many, 10)


@pytest.mark.parametrize("processors", [3, 40])
def test_partial_sums_fit_for_any_rows_and_matrices(processors: int) -> None:
    """Memory of the simulated card ends where it is allocated."""
    for columns in (16, 130, 300):
        bench = Bench(64, ("q4_g32", columns), num_processors=processors)
        bench.run(bench.product(), MAX_ROWS)
        expected = bench.read(2, MAX_ROWS)
        for rows in (9, 16, 17, 33, 65, 129):
            bench.run(bench.product(), rows)
            np.testing.assert_array_equal(bench.read(2, rows), expected[:rows])
