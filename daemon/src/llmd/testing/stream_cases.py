"""Workloads for hyper-connections."""

from __future__ import annotations

from collections.abc import Iterator

from llmd.api import HIDDEN, CollapseStreams, Linear, MixStreams, Op, StreamWeights, TensorRef
from llmd.testing.op_cases import part_case
from llmd.testing.workload import Workload

_WIDTH = 60
"""Elements of all streams together."""


def stream_cases() -> Iterator[Workload]:
    """Yield cases of `StreamWeights`, `CollapseStreams` and `MixStreams`."""
    for count, rounds in ((4, 20), (3, 1), (2, 2), (1, 3)):
        ops = (*_collapse(count, rounds), *_mix(count))
        yield part_case(f"mix_streams/{count}-{rounds}", ops, max_nmse=1e-9, width=_WIDTH)
    for count in (4, 5):
        back = TensorRef("back", (_WIDTH, _WIDTH // count))
        ops = (*_collapse(count, 0), Linear("x", (HIDDEN,), (back,), (None,)))
        yield part_case(f"collapse_streams/{count}", ops, max_nmse=1e-9, width=_WIDTH)


def _collapse(count: int, rounds: int) -> Iterator[Op]:
    rows, scales = (count * (count + 2), 3) if rounds else (count, 1)
    yield StreamWeights(
        HIDDEN,
        "weights",
        TensorRef("fn", (rows, _WIDTH)),
        TensorRef("base", (rows,)),
        TensorRef("scale", (scales,)),
        count,
        1e-3,
        1e-4,
        rounds,
    )
    yield CollapseStreams(HIDDEN, "weights", "x", count)


def _mix(count: int) -> Iterator[Op]:
    width = _WIDTH // count
    yield Linear("x", ("y",), (TensorRef("inner", (width, width)),), (None,))
    yield MixStreams(HIDDEN, "y", "weights", HIDDEN, count)
