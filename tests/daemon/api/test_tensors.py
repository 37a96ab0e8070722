from __future__ import annotations

from llmd.api import TensorRef


def test_a_row_range_cuts_the_first_axis() -> None:
    assert TensorRef("qkv", (12, 7)).view_shape == (12, 7)
    assert TensorRef("qkv", (12, 7), rows=(4, 6)).view_shape == (2, 7)
    assert TensorRef("bias", (12,), rows=(4, 6)).view_shape == (2,)
