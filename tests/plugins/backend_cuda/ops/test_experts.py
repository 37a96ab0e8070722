"""Mixtures of experts, with few rows and many, however rows use experts."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest

from llmd.api import Format, Program, SlottedOp, StageLimits, TensorRef, Weight
from llmd.api.expert_ops import Experts
from llmd.api.program import ActivationDtype, Instruction
from llmd.api.step import Float32
from llmd.builtin.reference.experts import ExpertTensors, mix
from llmd.builtin.reference.weights import Float64, Matrix, make_matrix
from llmd.testing.sources import RandomSource
from llmd_backend_cuda.context import Context, StepArgs
from llmd_backend_cuda.expert_memory import ExpertMemory, ExpertSizes
from llmd_backend_cuda.matrices import DeviceMatrix, load_stack
from llmd_backend_cuda.ops.experts import ExpertsArgs, experts_launches, most_groups
from llmd_backend_cuda.ops.linear import rounded_bytes
from llmd_backend_cuda.runtime import Launch, Memory
from tests.cuda.one_instruction import nmse, random_rows, upload
from tests.cuda.simulated import NEEDS_COMPILER, SimulatedCard, contents

pytestmark = NEEDS_COMPILER

MAX_NMSE = 3e-6
EXPERTS, HIDDEN, INNER, TOP_K, MAX_ROWS = 5, 96, 32, 2, 80


def _stack(name: str, *shape: int) -> TensorRef:
    return TensorRef(name, (EXPERTS, *shape), is_stack=True)


OP = Experts(
    "x",
    "r",
    "y",
    _stack("gate", INNER, HIDDEN),
    _stack("up", INNER, HIDDEN),
    _stack("down", HIDDEN, INNER),
    "silu",
    TOP_K,
)
BIASED = msgspec.structs.replace(
    OP,
    activation="quick_gelu",
    limit=1.0,
    offset=1.0,
    gate_bias=_stack("gate_bias", INNER),
    up_bias=_stack("up_bias", INNER),
    down_bias=_stack("down_bias", HIDDEN),
)
UNGATED = msgspec.structs.replace(OP, gate=None, activation="relu2")


class Bench:
    """A mixture: slot 0 has rows, slot 1 their routes, slot 2 the result."""

    def __init__(
        self, op: Experts, formats: Sequence[Format] = ("f16",) * 3, activations: ActivationDtype = "f16"
    ) -> None:
        self.op, self.card, self.activations = op, SimulatedCard(), activations
        places = dict(zip((0, 2, 4), formats, strict=True))
        refs = op.tensors
        weights = tuple(
            Weight(ref, places.get(place, "f32")) for place, ref in enumerate(refs) if ref is not None
        )
        numbers = [None if ref is None else [w.ref for w in weights].index(ref) for ref in refs]
        slotted = SlottedOp(op, (0, 1), (2,), tuple(numbers))
        self.x = random_rows(MAX_ROWS, HIDDEN, 1)
        widths = (HIDDEN, EXPERTS, HIDDEN)
        limits = StageLimits(MAX_ROWS, 1, 1)
        instructions = (Instruction((slotted,), 0, (2,)),)
        program = Program(
            0, 1, HIDDEN, 9, 64, (), instructions, widths, weights, (), None, None, activations=activations,
            precision="f16",
        )  # fmt: skip
        self.slotted, self.numbers = slotted, numbers
        self.vectors = [random_rows(EXPERTS, w.ref.view_shape[-1], i) for i, w in enumerate(weights)]
        self.slots = [self.card.allocate(4 * MAX_ROWS * width) for width in widths]
        self.counts = self.card.allocate(16)
        loaded: list[DeviceMatrix | None] = [self._loaded(weight) for weight in weights]
        memories: list[Memory | None] = [upload(self.card, vector) for vector in self.vectors]
        self.context = Context(
            self.card, program, limits, StepArgs(counts=self.counts.pointer), self.slots, memories, (),
            loaded, rounded=self.card.allocate(rounded_bytes(program, limits)), partials=self.card.allocate(16),
        )  # fmt: skip
        self.memory = ExpertMemory.allocate(self.card, ExpertSizes.of(program, limits))

    def launches(self, rows: int) -> list[Launch]:
        return list(experts_launches(self.context, self.slotted, rows, self.memory))

    def run(self, routes: Float32, first: int = 0) -> Float32:
        """Return the result of rows from ``first`` on, in a launch for some more rows than there are."""
        rows = len(routes)
        self.card.upload(self.counts, 0, np.array([rows, 1, 0, 0], np.int32))
        self.card.upload(self.slots[0], 0, self.x[first : first + rows])
        self.card.upload(self.slots[1], 0, routes)
        for launch in self.launches(rows + (rows > 8)):
            self.card.launch(launch)
        found: Float32 = contents(self.card, self.slots[2], np.float32, 0, rows * HIDDEN)  # type: ignore[assignment]
        return found.reshape(rows, HIDDEN)

    def expected(self, routes: Float32) -> Float32:
        gate, gate_bias, up, up_bias, down, down_bias = self.numbers
        tensors = ExpertTensors(
            self._members(gate),
            self._vectors(gate_bias),
            self._members(up) or (),
            self._vectors(up_bias),
            self._members(down) or (),
            self._vectors(down_bias),
        )
        return mix(self.op, tensors, self.x[: len(routes)], routes)

    def _vectors(self, number: int | None) -> Float64 | None:
        return None if number is None else self.vectors[number].astype(np.float64)

    def _members(self, number: int | None) -> list[Matrix] | None:
        if number is None:
            return None
        weight = self.context.program.weights[number]
        members = (Weight(weight.ref.member(expert), weight.format) for expert in range(EXPERTS))
        return [make_matrix(RandomSource().read(member), self.activations, "f16") for member in members]

    def _loaded(self, weight: Weight) -> DeviceMatrix | None:
        if not weight.ref.is_matrix:
            return None
        return load_stack(
            self.card, EXPERTS, lambda n: RandomSource().read(Weight(weight.ref.member(n), weight.format))
        )


def routes_of(rows: int, seed: int = 0) -> Float32:
    """Return random routes of up to `TOP_K` experts for each row; the first row uses none."""
    draw = np.random.default_rng(seed)
    routes = np.zeros((rows, EXPERTS), np.float32)
    for row in range(1, rows):
        used = draw.permutation(EXPERTS)[: draw.integers(1, TOP_K + 1)]
        routes[row, used] = draw.uniform(0.1, 1.0, len(used))
    return routes


CASES = {
    "gated": (OP, ("f16", "f16", "f16"), "f16"),
    "biases": (BIASED, ("mxfp4", "mxfp4", "q8"), "f16"),
    "int8": (BIASED, ("q8", "q8", "q4_g32"), "int8"),
    "two formats": (OP, ("q8", "q4_g32", "f16"), "f16"),
    "ungated": (UNGATED, ("f16", "f16", "f16"), "f16"),
}


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=pytest.mark.exhaustive if c in {"int8", "ungated"} else ()) for c in CASES]
)
def test_rows_are_right_and_have_the_same_bits_in_any_batch(case: str) -> None:
    op, formats, activations = CASES[case]
    bench = Bench(op, formats, activations)  # type: ignore[arg-type]
    routes = routes_of(30)
    rows = bench.run(routes)
    assert not rows[0].any(), "the first row uses no expert"
    assert nmse(rows, bench.expected(routes)) < (5e-5 if activations == "int8" else MAX_NMSE)
    for first, end in ((1, 2), (3, 11), (7, 24)):
        np.testing.assert_array_equal(bench.run(routes[first:end], first), rows[first:end])


def test_an_expert_may_have_all_rows() -> None:
    bench = Bench(OP)
    routes = np.zeros((MAX_ROWS - 1, EXPERTS), np.float32)
    routes[:, 3] = 0.5
    assert nmse(bench.run(routes), bench.expected(routes)) < MAX_NMSE
    groups = contents(bench.card, bench.memory.groups, np.int32).reshape(-1, 4)
    used = groups[: -(-len(routes) // groups[0, 2])]
    assert (used[:, 0] == 3).all()
    np.testing.assert_array_equal(used[:, 2][:-1], used[:, 1][1:])
    assert used[-1, 2] == len(routes)


def test_assigned_rows_have_the_order_of_experts_and_of_the_step() -> None:
    """With this many experts, a thread counts several rows."""
    bench, experts, rows = Bench(OP), 300, 30
    routes = np.zeros((rows, experts), np.float32)
    draw = np.random.default_rng(2)
    for row in routes:
        row[7] = row[int(draw.integers(8, experts))] = 1.0
    uploaded, places = upload(bench.card, routes), bench.card.allocate(routes.nbytes)
    bench.card.upload(bench.counts, 0, np.array([rows, 1, 0, 0], np.int32))
    (launch, *_) = bench.launches(rows)
    args = launch.args
    assert isinstance(args, ExpertsArgs)
    args.routes, args.places, args.experts = uploaded.pointer, places.pointer, experts
    args.most_groups, args.group_rows = 2 * rows, 8
    bits = bench.card.allocate(4 * -(-experts // 32))
    args.used = bits.pointer
    bench.card.launch(launch)
    words = contents(bench.card, bits, np.uint8).view(np.uint8)
    np.testing.assert_array_equal(np.unpackbits(words, bitorder="little")[:experts], routes.any(axis=0))
    used = np.argwhere(routes.T)
    numbers = contents(bench.card, bench.memory.row_numbers, np.int32, 0, 2 * rows)
    np.testing.assert_array_equal(numbers, used[:, 1])
    found = contents(bench.card, places, np.int32).reshape(rows, experts)
    np.testing.assert_array_equal(found[used[:, 1], used[:, 0]], np.arange(2 * rows))
    groups = contents(bench.card, bench.memory.groups, np.int32, 0, 4 * 2 * rows).reshape(-1, 4)
    assert groups[:4].tolist() == [[7, 0, 8, 0], [7, 8, 16, 0], [7, 16, 24, 0], [7, 24, 30, 0]]
    assert groups[:, 2].max() == 2 * rows
    assert not groups[-1].any(), "groups that do not exist have no rows"


def test_no_row_uses_an_expert() -> None:
    bench = Bench(OP)
    for rows in (1, 20):
        assert not bench.run(np.zeros((rows, EXPERTS), np.float32)).any()


def test_few_rows_take_one_launch_for_the_gate_and_one_for_down() -> None:
    def names(op: Experts, rows: int) -> list[str]:
        return [launch.kernel.spec.name for launch in Bench(op).launches(rows)]

    assert names(OP, 8) == ["assign_rows", "gemv", "gemv", "sum_rows"]
    assert names(UNGATED, 1) == ["assign_rows", "gemv", "gate_rows", "gemv", "sum_rows"]
    many = ["assign_rows", "round_rows", "gemm", "gate_rows", "round_rows", "gemm", "sum_rows"]
    assert names(OP, 9) == many


def test_launches_do_not_depend_on_routes_but_have_a_block_for_every_group() -> None:
    draw = np.random.default_rng(0)
    for _ in range(200):
        experts, rows, group_rows = draw.integers(1, 20, 3)
        top_k = int(draw.integers(1, experts + 1))
        used = [draw.permutation(experts)[:top_k] for _ in range(rows)]
        counts = np.bincount(np.concatenate(used), minlength=experts)
        assert (-(-counts // group_rows)).sum() <= most_groups(rows * top_k, int(experts), int(group_rows))
    assert most_groups(8, 128, 8) == 8
