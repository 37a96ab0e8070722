"""Hyper-connections: residual connections of several streams, in the layers and at both ends of a model."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from llmd.api import HIDDEN, CollapseStreams, Join, MixStreams, Op, StreamWeights, TensorRef

WEIGHTS = "stream_weights"
"""The value with the weights of the streams, from the beginning of a part to its end."""


class Streams(msgspec.Struct, frozen=True):
    """How a family mixes its streams."""

    count: int
    eps: float
    """Of the norm before the product."""
    floor: float
    """Of `StreamWeights`."""
    rounds: int
    """Of `StreamWeights`."""
    modules: tuple[str, str] = ("hc_attn", "hc_ffn")
    """What the names of the tensors of a layer begin with: those of its mixer, and of its second part."""
    head: str = "hc_head"
    """What they begin with at the end of the model."""


def spread_streams(streams: Streams) -> Iterator[Op]:
    """Yield the ops that make all streams of the embedding."""
    copies = HIDDEN
    for made in range(2, streams.count + 1):
        out = HIDDEN if made == streams.count else "copies"
        yield Join(copies, HIDDEN, out, 1)
        copies = out


def collapse_streams(streams: Streams, name: str, width: int, out: str, *, only_read: bool) -> Iterator[Op]:
    """Yield the ops that write one mixture of all streams to ``out``, ``width`` elements.

    ``name`` begins the names of the tensors. With ``only_read``, there are no weights to write a result with.
    """
    count = streams.count
    rows, scales = (count, 1) if only_read else (count * (count + 2), 3)
    weight, bias, scale = (
        TensorRef(f"{name}_{part}", shape)
        for part, shape in (("fn", (rows, count * width)), ("base", (rows,)), ("scale", (scales,)))
    )
    rounds = 0 if only_read else streams.rounds
    yield StreamWeights(HIDDEN, WEIGHTS, weight, bias, scale, count, streams.eps, streams.floor, rounds)
    yield CollapseStreams(HIDDEN, WEIGHTS, out, count)


def mix_streams(streams: Streams) -> Op:
    """Return the op that adds the result ``y`` of a part to all streams."""
    return MixStreams(HIDDEN, "y", WEIGHTS, HIDDEN, streams.count)
