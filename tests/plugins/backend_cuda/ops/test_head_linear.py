"""Products with a matrix for each head, and the same bits however a step is cut."""

from __future__ import annotations

import numpy as np
import pytest

from llmd.api import Format, HeadLinear, Program, StageLimits, TensorRef, Weight
from llmd.api.program import ActivationDtype, Instruction, SlottedOp
from llmd.api.step import Float32
from llmd.builtin.reference.weights import make_matrix
from llmd.testing.sources import RandomSource
from llmd_backend_cuda.context import Context, StepArgs
from llmd_backend_cuda.matrices import load_stack
from llmd_backend_cuda.ops.head_linear import head_linear_launches
from llmd_backend_cuda.ops.linear import rounded_bytes
from llmd_backend_cuda.runtime import Launch
from tests.cuda.one_instruction import nmse, random_rows
from tests.cuda.simulated import NEEDS_COMPILER, SimulatedCard, contents

pytestmark = NEEDS_COMPILER

HEADS, MAX_ROWS = 3, 40
MAX_NMSE = 1e-7
"""Products of float16 rows, summed in float32."""


class Bench:
    """An op: slot 0 has rows, slot 1 the result."""

    def __init__(
        self,
        out: int,
        width: int,
        fmt: Format,
        activations: ActivationDtype = "f16",
        card: SimulatedCard | None = None,
    ) -> None:
        self.card, self.out, self.width = card or SimulatedCard(), out, width
        ref = TensorRef("heads", (HEADS, out, width), is_stack=True)
        self.slotted = SlottedOp(HeadLinear("x", "y", ref), (0,), (1,), (0,))
        self.members = [RandomSource().read(Weight(ref.member(number), fmt)) for number in range(HEADS)]
        self.activations = activations
        program = Program(
            0, 1, HEADS * out, 9, 64, (), (Instruction((self.slotted,), 0, (1,)),), (HEADS * width, HEADS * out),
            (Weight(ref, fmt),), (), None, None, activations=activations, precision="f16",
        )  # fmt: skip
        limits = StageLimits(MAX_ROWS, 1, 1)
        self.x = random_rows(MAX_ROWS, HEADS * width, 1)
        self.slots = [self.card.allocate(4 * MAX_ROWS * slot) for slot in program.slot_widths]
        self.context = Context(
            self.card, program, limits, StepArgs(), self.slots, (), (),
            [load_stack(self.card, HEADS, self.members.__getitem__)],
            rounded=self.card.allocate(rounded_bytes(program, limits)), partials=self.card.allocate(16),
        )  # fmt: skip

    def launches(self, rows: int) -> list[Launch]:
        return list(head_linear_launches(self.context, self.slotted, rows))

    def run(self, first: int, end: int) -> Float32:
        """Return the result of some rows, whose launch has no other rows."""
        rows = end - first
        self.card.upload(self.slots[0], 0, self.x[first:end])
        for launch in self.launches(rows):
            self.card.launch(launch)
        found = contents(self.card, self.slots[1], np.float32, 0, rows * HEADS * self.out)
        return found.reshape(rows, -1).astype(np.float32)

    def expected(self, rows: int) -> Float32:
        matrices = [make_matrix(member, self.activations, "f16") for member in self.members]
        slices = self.x[:rows].reshape(rows, HEADS, self.width)
        products = [[m.multiply(x) for m, x in zip(matrices, row, strict=True)] for row in slices]
        return np.array(products).reshape(rows, -1).astype(np.float32)


CASES: dict[str, tuple[int, int, Format, ActivationDtype]] = {
    "small": (20, 12, "f16", "f16"),
    "wide": (130, 200, "f16", "f16"),
    "q8": (24, 128, "q8", "f16"),
    "int8": (24, 128, "q4_g32", "int8"),
}


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=pytest.mark.exhaustive if c == "q8" else ()) for c in CASES]
)
def test_rows_are_right_and_have_the_same_bits_in_any_batch(case: str) -> None:
    bench = Bench(*CASES[case])
    rows = bench.run(0, 35)
    assert nmse(rows, bench.expected(35)) < (5e-5 if bench.activations == "int8" else MAX_NMSE)
    for first, end in ((1, 2), (3, 11), (7, 24)):
        np.testing.assert_array_equal(bench.run(first, end), rows[first:end])


def test_few_rows_take_one_launch() -> None:
    bench = Bench(20, 12, "f16")
    assert [launch.kernel.spec.name for launch in bench.launches(8)] == ["gemv"]
    assert [launch.kernel.spec.name for launch in bench.launches(9)] == ["round_rows", "gemm"]
