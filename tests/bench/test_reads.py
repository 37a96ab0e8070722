"""A step reads each expert that one of its rows uses once."""

from __future__ import annotations

import pytest

from bench.reads import Reads
from bench.shapes import Mixture


def test_more_rows_read_more_experts_but_no_more_than_there_are() -> None:
    reads = Reads(100, 1000, Mixture(experts=10, used=2, ffn=1))
    assert reads.of(1) == pytest.approx(100 + 200)
    assert reads.of(2) == pytest.approx(100 + 1000 * (1 - 0.8**2))
    assert reads.of(1000) == pytest.approx(1100)


def test_a_dense_model_reads_the_same_for_any_number_of_rows() -> None:
    assert Reads(100).of(1) == Reads(100).of(16) == 100
