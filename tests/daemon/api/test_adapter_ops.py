"""What an op of adapters reads, writes and has."""

from __future__ import annotations

from llmd.api import Adapt, LowRank, TensorRef

A, B = TensorRef("a", (3, 8)), TensorRef("b", (6, 3))


def test_it_reads_its_input_and_the_products_that_it_changes() -> None:
    change = LowRank(A, B, 0.5)
    op = Adapt("x", ("q", "k"), ("r", "l"), ((change, None), (None, change)))
    assert (op.reads, op.writes, op.num_adapters) == (("x", "q", "k"), ("r", "l"), 2)
    assert op.tensors == (A, B, None, None, None, None, A, B)
    assert op.scales == (0.5, 0.0, 0.0, 0.5)
    assert change.rank == 3
