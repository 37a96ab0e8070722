from __future__ import annotations

from llmd.api import HeadLinear, TensorRef


def test_a_row_enters_and_leaves_the_matrices_of_all_heads() -> None:
    whole = TensorRef("kv_b", (4, 30, 20), is_stack=True)
    assert HeadLinear("x", "y", whole).heads == 4
    assert HeadLinear("x", "y", whole).row_elements == 4 * (30 + 20)
    columns = TensorRef("kv_b", (4, 30, 20), is_stack=True, is_transposed=True, columns=(0, 12))
    assert HeadLinear("x", "y", columns).row_elements == 4 * (20 + 12)
