"""Streams are made of the embedding and become one again."""

from __future__ import annotations

import pytest

from llmd.api import HIDDEN, CollapseStreams, Join, StreamWeights
from llmd.builtin.architectures.streams import Streams, collapse_streams, spread_streams


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_all_streams_are_copies_of_the_embedding(count: int) -> None:
    copies = {HIDDEN: 1}
    for op in spread_streams(Streams(count, 1e-6, 1e-6, 2)):
        assert isinstance(op, Join)
        copies[op.out] = copies[op.a] + copies[op.b]
    assert copies[HIDDEN] == count


@pytest.mark.parametrize(("only_read", "rows", "scales"), [(False, 24, 3), (True, 4, 1)])
def test_a_mixture_has_weights_to_write_with_unless_it_is_the_last(
    *, only_read: bool, rows: int, scales: int
) -> None:
    streams = Streams(4, 1e-6, 1e-5, 20)
    weights, collapse = collapse_streams(streams, "layers.0.hc_attn", 8, "x", only_read=only_read)
    assert isinstance(weights, StreamWeights)
    assert isinstance(collapse, CollapseStreams)
    assert [ref.shape for ref in weights.tensors if ref] == [(rows, 32), (rows,), (scales,)]
    assert weights.rounds == (0 if only_read else 20)
    assert (weights.eps, weights.floor) == (1e-6, 1e-5)
