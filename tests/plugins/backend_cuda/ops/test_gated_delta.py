"""States of linear attention that each row of a sequence changes."""

from __future__ import annotations

from typing import Any

import pytest

from llmd.api import TensorRef
from llmd.api.state_ops import GatedDelta
from tests.cuda.simulated import NEEDS_COMPILER
from tests.cuda.state_bench import assert_same_as_the_reference, assert_same_bits_in_parts

pytestmark = NEEDS_COMPILER


def op_of(heads: int, key_heads: int, dims: tuple[int, int], taps: int, **fields: Any) -> GatedDelta:
    """Return an op; with ``by_element``, each element of a key has a decay."""
    key_dim, value_dim = dims
    decays = heads * key_dim if fields.pop("by_element", False) else heads
    keys, values = key_heads * key_dim, heads * value_dim
    q_taps, k_taps, v_taps = (
        TensorRef(name, (width, 1, taps)) for name, width in (("q", keys), ("k", keys), ("v", values))
    )
    return GatedDelta(
        "q",
        "k",
        "v",
        "decay",
        "beta",
        "y",
        q_taps,
        k_taps,
        v_taps,
        rates=TensorRef("rates", (heads,)),
        bias=TensorRef("bias", (decays,)),
        group=0,
        layer=1,
        heads=heads,
        key_heads=key_heads,
        key_dim=key_dim,
        value_dim=value_dim,
        **fields,
    )


OPS = {
    "grouped": op_of(4, 2, (12, 40), 4),
    "tiled": op_of(6, 2, (16, 16), 3, tiled=True),
    "elements": op_of(2, 2, (10, 33), 4, by_element=True),
    "wide": op_of(1, 1, (130, 5), 2, by_element=True),
    "one-tap": op_of(3, 3, (7, 5), 1),
    "negative": op_of(2, 1, (8, 8), 4, rates_as="negative"),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.exhaustive if n in {"tiled", "one-tap"} else ()) for n in OPS],
)
def test_outputs_and_states_are_those_of_the_reference(name: str) -> None:
    assert_same_as_the_reference(OPS[name])


def test_a_sequence_has_the_same_bits_in_parts() -> None:
    assert_same_bits_in_parts(OPS["grouped"])
