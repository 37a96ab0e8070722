"""States of Mamba-2 that each row of a sequence changes."""

from __future__ import annotations

import pytest

from llmd.testing.state_cases import state_space
from tests.cuda.simulated import NEEDS_COMPILER
from tests.cuda.state_bench import assert_same_as_the_reference, assert_same_bits_in_parts

pytestmark = NEEDS_COMPILER


OPS = {
    "grouped": state_space(4, 2, (12, 40), 4, layer=1),
    "one-group": state_space(6, 1, (16, 16), 3, biased=False, layer=1),
    "bounds": state_space(2, 2, (10, 33), 4, least_time=0.3, most_time=1.1, layer=1),
    "wide": state_space(1, 1, (130, 5), 2, layer=1),
    "one-tap": state_space(3, 3, (7, 5), 1, least_time=0.01, layer=1),
    "negative": state_space(2, 1, (8, 8), 4, rates_as="negative", layer=1),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.exhaustive if n in {"one-group", "one-tap"} else ()) for n in OPS],
)
def test_outputs_and_states_are_those_of_the_reference(name: str) -> None:
    assert_same_as_the_reference(OPS[name])


def test_a_sequence_has_the_same_bits_in_parts() -> None:
    assert_same_bits_in_parts(OPS["grouped"])
