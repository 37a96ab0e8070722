"""States of linear attention that each row of a sequence changes."""

from __future__ import annotations

import pytest

from llmd.testing.state_cases import gated_delta
from tests.cuda.simulated import NEEDS_COMPILER
from tests.cuda.state_bench import assert_same_as_the_reference, assert_same_bits_in_parts

pytestmark = NEEDS_COMPILER


OPS = {
    "grouped": gated_delta(4, 2, (12, 40), 4, layer=1),
    "tiled": gated_delta(6, 2, (16, 16), 3, tiled=True, layer=1),
    "elements": gated_delta(2, 2, (10, 33), 4, by_element=True, layer=1),
    "wide": gated_delta(1, 1, (130, 5), 2, by_element=True, layer=1),
    "one-tap": gated_delta(3, 3, (7, 5), 1, layer=1),
    "negative": gated_delta(2, 1, (8, 8), 4, rates_as="negative", layer=1),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.exhaustive if n in {"tiled", "one-tap"} else ()) for n in OPS],
)
def test_outputs_and_states_are_those_of_the_reference(name: str) -> None:
    assert_same_as_the_reference(OPS[name])


def test_a_sequence_has_the_same_bits_in_parts() -> None:
    assert_same_bits_in_parts(OPS["grouped"])
