"""Ops of values that need neither the step nor a cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from llmd.api.compressed_ops import MergeAttention
from llmd.api.latent_ops import Join
from llmd.api.ops import Activate, Add, Gate, Glu, Multiply, Op
from llmd.api.stream_ops import CollapseStreams, MixStreams, StreamWeights
from llmd.builtin.reference import numerics
from llmd.builtin.reference.compression import merge_attention
from llmd.builtin.reference.numerics import Float64
from llmd.builtin.reference.streams import collapse_streams, mix_streams, stream_weights


def elementwise(op: Op, *x: Float64) -> Float64:
    """Compute an op of the values and then the tensors ``x``."""
    rule = _RULES.get(type(op))
    assert rule is not None, f"{op.kind} has no rule here"
    return rule(op, *x)


def _glu(op: Glu, gate: Float64, up: Float64) -> Float64:
    gate, up = numerics.limited(op.limit, gate, up)
    return numerics.ACTIVATIONS[op.activation](numerics.zero_below(op.threshold, gate)) * up


def _activate(op: Activate, x: Float64) -> Float64:
    return numerics.ACTIVATIONS[op.activation](x)


def _add(op: Add, a: Float64, b: Float64) -> Float64:
    return a + b * op.scale


def _join(op: Join, *parts: Float64) -> Float64:
    slices = [one.reshape(len(one), op.heads, -1) for one in parts]
    return np.concatenate(slices, axis=-1).reshape(len(parts[0]), -1)


def _multiply(_: Multiply, x: Float64, factor: Float64) -> Float64:
    return x * factor


def _gate(_: Gate, x: Float64, gate: Float64) -> Float64:
    return x * np.repeat(numerics.sigmoid(gate), x.shape[1] // gate.shape[1], axis=1)


_RULES: Mapping[type, Callable[..., Float64]] = {
    Glu: _glu,
    Activate: _activate,
    Add: _add,
    Join: _join,
    Multiply: _multiply,
    Gate: _gate,
    MergeAttention: merge_attention,
    StreamWeights: stream_weights,
    CollapseStreams: collapse_streams,
    MixStreams: mix_streams,
}
