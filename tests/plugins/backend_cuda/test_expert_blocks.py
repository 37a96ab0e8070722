"""Blocks have the matrices of each expert as stacks have them."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from llmd.api import Format, Program, Weight
from llmd.api.expert_cache import expert_stacks
from llmd.api.expert_ops import Experts
from llmd.models.lowering import lower
from llmd.testing.plans import TinyModel
from llmd.testing.sources import RandomSource
from llmd_backend_cuda.expert_blocks import ExpertBlocks, ExpertLoading
from llmd_backend_cuda.matrices import DeviceMatrix, load_stack
from tests.cuda.simulated import NEEDS_COMPILER, SimulatedCard, contents

pytestmark = NEEDS_COMPILER

PLAN = TinyModel(layers=2, experts=5, hidden=256, ffn=256).plan()


def program_of(fmt: Format, share: int | None = 0, streamed: tuple[int, ...] = ()) -> Program:
    program = lower(
        PLAN,
        0,
        len(PLAN.parts),
        format_of=lambda _kind, ref: fmt if ref.is_stack and ref.is_matrix else "f32",
        activations="f16",
        precision="f16",
        streamed=streamed,
    )
    return msgspec.structs.replace(program, expert_bytes=share)


def load(card: SimulatedCard, program: Program, known: tuple[ExpertBlocks, ...] = ()) -> ExpertLoading:
    loading = ExpertLoading(card, program, known)
    for index in sorted(loading.weights, reverse=True):
        loading.load(index, RandomSource())
    return loading


@pytest.mark.parametrize("fmt", ["f16", "q4_g32", "q4_k", "mxfp4", "nvfp4"])
def test_a_block_has_the_bytes_of_each_member_of_the_stacks(fmt: Format) -> None:
    card, program = SimulatedCard(), program_of(fmt)
    for layer in load(card, program).layers():
        for weight, matrix in zip(layer.weights, layer.matrices, strict=True):
            stack = _stack(card, weight)
            arrays = ("low", "high", "scales", "minimums", "fine", "row_scales")
            names = [name for name in arrays if getattr(stack, name)]
            for name in names:
                place, memory = getattr(matrix, name), getattr(stack, name)
                expected = contents(card, memory, np.uint8).reshape(5, -1)
                assert expected.shape[1] == place.num_bytes
                assert place.pointer % 256 == 0
                found = layer.contents[:, place.pointer : place.pointer + place.num_bytes]
                np.testing.assert_array_equal(found, expected)


def _stack(card: SimulatedCard, weight: Weight) -> DeviceMatrix:
    return load_stack(
        card, 5, lambda number: RandomSource().read(Weight(weight.ref.member(number), weight.format))
    )


def test_each_mixture_is_a_layer_with_all_its_matrices() -> None:
    program = program_of("f16")
    mixtures = [one for one in program.ops if isinstance(one.op, Experts)]
    loading = load(SimulatedCard(), program)
    assert [len(layer.weights) for layer in loading.layers()] == [3] * len(mixtures)
    assert set(loading.weights) == expert_stacks(program)


def test_only_one_expert_at_a_time_is_on_the_card() -> None:
    card = SimulatedCard()
    (first, _) = load(card, program_of("f16")).layers()
    assert card.used_bytes == 0
    card = SimulatedCard(memory_bytes=2 * first.contents.shape[1])
    load(card, program_of("f16"))


def test_layers_that_another_program_has_are_used_again() -> None:
    card = SimulatedCard()
    known = tuple(load(card, program_of("f16")).layers())
    again = load(card, program_of("f16"), known).layers()
    assert all(mine is other for mine, other in zip(again, known, strict=True))


def test_experts_stay_in_stacks_without_a_limit_and_in_streamed_parts() -> None:
    card = SimulatedCard()
    assert not ExpertLoading(card, program_of("f16", None)).weights
    streamed = program_of("f16", 0, tuple(part for part in range(1, len(PLAN.parts) - 1)))
    assert not ExpertLoading(card, streamed).layers()
