"""Ops of values alone."""

from __future__ import annotations

import numpy as np
import pytest

from llmd.api import Embed, Glu, Join, TensorRef
from llmd.builtin.reference.elementwise import elementwise
from llmd.builtin.reference.numerics import silu


def test_a_limit_holds_for_the_gate_from_above_and_for_the_other_factor_on_both_sides() -> None:
    gate, up = np.array([[-9.0, 9.0, 1.0]]), np.array([[-9.0, 9.0, 1.0]])
    found = elementwise(Glu("g", "u", "y", "silu", limit=2.0), gate, up)
    np.testing.assert_allclose(found, silu(np.array([[-9.0, 2.0, 1.0]])) * [[-2.0, 2.0, 1.0]])


def test_slices_are_joined_head_by_head() -> None:
    found = elementwise(Join("a", "b", "c", 2), np.array([[1.0, 2.0]]), np.array([[3.0, 4.0, 5.0, 6.0]]))
    assert found.tolist() == [[1, 3, 4, 2, 5, 6]]


def test_an_op_that_needs_more_than_values_has_no_rule() -> None:
    with pytest.raises(AssertionError, match="embed has no rule here"):
        elementwise(Embed("h", TensorRef("t", (2, 2))))
