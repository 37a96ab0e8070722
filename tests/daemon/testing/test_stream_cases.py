"""The cases of hyper-connections have matrices that are balanced often, once and never."""

from __future__ import annotations

from llmd.api import MixStreams, StreamWeights
from llmd.testing.stream_cases import stream_cases

CASES = {case.name: case for case in stream_cases()}


def test_matrices_are_balanced_often_once_and_never() -> None:
    rounds = [op.rounds for case in CASES.values() for op in case.ops if isinstance(op, StreamWeights)]
    assert {0, 1} < {*rounds}
    assert max(rounds) > 1


def test_streams_are_mixed_if_there_are_weights_for_it() -> None:
    for case in CASES.values():
        (weights,) = (op for op in case.ops if isinstance(op, StreamWeights))
        assert any(isinstance(op, MixStreams) for op in case.ops) == (weights.rounds > 0)
        assert case.plan.hidden_size % weights.streams == 0
