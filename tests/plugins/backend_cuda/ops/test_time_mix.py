"""The ops of RWKV-7, which keep parts of the state of a layer."""

from __future__ import annotations

import msgspec
import pytest

from llmd.api import StageLimits
from llmd.testing.time_mix_cases import generalized_delta, token_shift
from llmd_backend_cuda.ops.state_rows import StateRowsSizes
from tests.cuda.simulated import NEEDS_COMPILER
from tests.cuda.state_bench import Bench, StateOp, assert_same_as_the_reference, assert_same_bits_in_parts

pytestmark = NEEDS_COMPILER

OPS: dict[str, StateOp] = {
    "shift": token_shift(("a", "b", "c"), width=140, offset=5),
    "even": generalized_delta(2, 16),
    "odd": generalized_delta(3, 13, offset=7),
    "wide": generalized_delta(1, 130),
}
OPS = {name: msgspec.structs.replace(op, layer=1) for name, op in OPS.items()}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.exhaustive if n in {"even", "wide"} else ()) for n in OPS]
)
def test_outputs_and_states_are_those_of_the_reference(name: str) -> None:
    assert_same_as_the_reference(OPS[name])


@pytest.mark.parametrize("name", ["shift", "odd"])
def test_a_sequence_has_the_same_bits_in_parts(name: str) -> None:
    assert_same_bits_in_parts(OPS[name])


def test_rows_have_memory_for_what_they_are_turned_into() -> None:
    program = Bench(OPS["odd"]).one.program
    assert StateRowsSizes.of(program, StageLimits(10, 1, 1)).num_bytes == 40 * 4 * 39
