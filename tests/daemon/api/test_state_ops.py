from __future__ import annotations

from llmd.api import TensorRef
from llmd.api.state_ops import GatedDelta, StateSpace


def test_a_state_is_the_rows_that_convolutions_need_and_a_matrix_for_each_head() -> None:
    taps = TensorRef("conv1d", (50, 1, 4), rows=(0, 14))
    op = GatedDelta(
        "q", "k", "v", "decay", "beta", "out", taps, taps, taps,
        rates=TensorRef("rates", (4,)), bias=TensorRef("bias", (4,)), group=0, layer=3,
        heads=4, key_heads=2, key_dim=7, value_dim=5,
    )  # fmt: skip
    assert op.taps == 4
    assert op.state_elements == 3 * (14 + 14 + 20) + 4 * 7 * 5
    assert op.row_elements == 14 + 14 + 20 + 4 + 4
    assert not op.decays_elements
    assert op.reads == ("q", "k", "v", "decay", "beta")
    assert len(op.tensors) == 5


def test_a_state_space_keeps_rows_and_a_matrix_for_each_head() -> None:
    taps = TensorRef("conv1d", (48, 1, 4), rows=(0, 14))
    vector = TensorRef("vector", (4,))
    op = StateSpace(
        "c", "b", "x", "time", "out", taps, taps, taps, vector, vector, vector, group=0, layer=3,
        heads=4, groups=2, state_size=7, head_dim=5,
    )  # fmt: skip
    assert op.taps == 4
    assert op.state_elements == 3 * (14 + 14 + 20) + 4 * 7 * 5
    assert op.row_elements == 14 + 14 + 20 + 4 + 4
    assert op.reads == ("c", "b", "x", "time")
    assert op.tensors[-3:] == (None, None, None)
