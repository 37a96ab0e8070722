from __future__ import annotations

from llmd.api import Experts, TensorRef


def test_the_number_of_experts_is_that_of_their_matrices() -> None:
    stack = TensorRef("w", (8, 4, 4), is_stack=True)
    assert Experts("x", "r", "y", None, stack, stack, "silu", 2).num_experts == 8
    few = stack.member(3)
    assert Experts("x", "r", "y", None, few, few, "silu", 1).num_experts == 1
