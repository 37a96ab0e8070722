"""States of Mamba-2 that each row of a sequence changes."""

from __future__ import annotations

from typing import Any

import pytest

from llmd.api import StateSpace, TensorRef
from tests.cuda.simulated import NEEDS_COMPILER
from tests.cuda.state_bench import assert_same_as_the_reference, assert_same_bits_in_parts

pytestmark = NEEDS_COMPILER


def op_of(
    heads: int, groups: int, dims: tuple[int, int], taps: int, *, biased: bool = True, **fields: Any
) -> StateSpace:
    """Return an op; with ``biased``, the convolutions have biases."""
    state_size, head_dim = dims
    widths = {"c": groups * state_size, "b": groups * state_size, "x": heads * head_dim}
    c_taps, b_taps, x_taps = (TensorRef(name, (width, 1, taps)) for name, width in widths.items())
    biases: dict[str, Any] = {
        f"{name}_bias": TensorRef(f"{name}.bias", (width,)) for name, width in widths.items()
    }
    return StateSpace(
        "c",
        "b",
        "x",
        "time",
        "y",
        c_taps,
        b_taps,
        x_taps,
        rates=TensorRef("rates", (heads,)),
        bias=TensorRef("bias", (heads,)),
        skips=TensorRef("skips", (heads,)),
        group=0,
        layer=1,
        heads=heads,
        groups=groups,
        state_size=state_size,
        head_dim=head_dim,
        **(biases if biased else {}),
        **fields,
    )


OPS = {
    "grouped": op_of(4, 2, (12, 40), 4),
    "one-group": op_of(6, 1, (16, 16), 3, biased=False),
    "bounds": op_of(2, 2, (10, 33), 4, least_time=0.3, most_time=1.1),
    "wide": op_of(1, 1, (130, 5), 2),
    "one-tap": op_of(3, 3, (7, 5), 1, least_time=0.01),
    "negative": op_of(2, 1, (8, 8), 4, rates_as="negative"),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.exhaustive if n in {"one-group", "one-tap"} else ()) for n in OPS],
)
def test_outputs_and_states_are_those_of_the_reference(name: str) -> None:
    assert_same_as_the_reference(OPS[name])


def test_a_sequence_has_the_same_bits_in_parts() -> None:
    assert_same_bits_in_parts(OPS["grouped"])
