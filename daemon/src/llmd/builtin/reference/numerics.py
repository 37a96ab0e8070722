"""The mathematics of each op. Values are float32 ``[rows, width]``; sums are taken in float64, one row at a
time, so that the result of a row does not depend on the other rows of a batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from llmd.api.activations import Activation
from llmd.api.ops import RopeTable
from llmd.api.program import Precision
from llmd.builtin.reference.rounding import round_to

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]

_erf = np.vectorize(math.erf, otypes=[np.float64])


def rms_norm(x: Float32, gain: Float64, eps: float) -> Float32:
    """``x / sqrt(mean(x^2) + eps) * gain`` over the last axis."""
    wide = x.astype(np.float64)
    scale = 1.0 / np.sqrt(np.mean(wide * wide, axis=-1, keepdims=True) + eps)
    out: Float32 = (wide * scale * gain).astype(np.float32)
    return out


def layer_norm(x: Float32, gain: Float64, bias: Float64 | None, eps: float) -> Float32:
    """``(x - mean) / sqrt(var + eps) * gain + bias`` over the last axis."""
    wide = x.astype(np.float64)
    centred = wide - np.mean(wide, axis=-1, keepdims=True)
    variance = np.mean(centred * centred, axis=-1, keepdims=True)
    out = centred / np.sqrt(variance + eps) * gain
    shifted: Float32 = (out if bias is None else out + bias).astype(np.float32)
    return shifted


def rotate(x: Float32, positions: NDArray[np.int32], table: RopeTable, *, interleaved: bool) -> Float32:
    """Rotate the first ``rotary_dim`` elements of ``x`` ``[rows, heads, head_dim]`` by the row's position."""
    dim = table.rotary_dim
    angles = positions[:, None, None].astype(np.float64) * np.array(table.inv_freq)
    cos, sin = np.cos(angles) * table.factor, np.sin(angles) * table.factor
    out = x.astype(np.float64)
    rotated = out[..., :dim]
    if interleaved:
        a, b = rotated[..., 0::2].copy(), rotated[..., 1::2].copy()
        rotated[..., 0::2], rotated[..., 1::2] = a * cos - b * sin, b * cos + a * sin
    else:
        a, b = rotated[..., : dim // 2].copy(), rotated[..., dim // 2 :].copy()
        rotated[..., : dim // 2], rotated[..., dim // 2 :] = a * cos - b * sin, b * cos + a * sin
    return out.astype(np.float32)


def soft_cap(z: Float64, cap: float | None) -> Float64:
    """Return ``cap * tanh(z / cap)``, or ``z`` if ``cap`` is None."""
    return z if cap is None else cap * np.tanh(z / cap)


def attend(
    q: Float64,
    k: Float64,
    v: Float64,
    scale: float,
    cap: float | None,
    precision: Precision = "f32",
    sinks: Float64 | None = None,
) -> Float64:
    """Attend for one row: ``q`` ``[heads, dim]``, visible ``k`` ``[positions, kv_heads, dim]``
    and ``v`` ``[positions, kv_heads, value dim]``. Return ``[heads, value dim]``; 0 without a position.

    ``sinks`` ``[heads]`` are scores that count for the sum of each head's softmax only.

    ``precision`` rounds ``q``, and the weights of the values before they are divided by their sum: the
    largest is 1 then, however long the context is.
    """
    if not len(k):
        return np.zeros((len(q), v.shape[2]))
    weights, total, _ = _exponentials(q, k, scale, cap, precision, sinks)
    out: Float64 = np.einsum("ght,tgd->ghd", round_to(precision, weights) / total, v)
    return out.reshape(q.shape[0], -1)


def attention_sums(
    q: Float64,
    k: Float64,
    scale: float,
    cap: float | None,
    precision: Precision = "f32",
    sinks: Float64 | None = None,
) -> Float64:
    """Return the logarithms of the sums that `attend` divides by, ``[heads]``; its arguments are the same."""
    if not len(k):
        return np.full(len(q), -np.inf) if sinks is None else sinks
    _, total, top = _exponentials(q, k, scale, cap, precision, sinks)
    return (np.log(total) + top).reshape(-1)


def _exponentials(
    q: Float64, k: Float64, scale: float, cap: float | None, precision: Precision, sinks: Float64 | None
) -> tuple[Float64, Float64, Float64]:
    """Return the exponentials of scores minus the largest, ``[kv_heads, heads of each, positions]``, their
    sums with those of sinks, and the largest scores.
    """
    kv_heads = k.shape[1]
    grouped = round_to(precision, q).reshape(kv_heads, -1, q.shape[1])
    scores = soft_cap(np.einsum("ghd,tgd->ght", grouped, k) * scale, cap)
    top = scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores - top)
    total = weights.sum(axis=-1, keepdims=True)
    if sinks is not None:
        total += np.exp(sinks.reshape(kv_heads, -1, 1) - top)
    return weights, total, top


def softplus(x: Float64) -> Float64:
    """``ln(1 + exp(x))``, without overflow."""
    result: Float64 = np.logaddexp(0.0, x)
    return result


def sigmoid(x: Float64) -> Float64:
    """``1 / (1 + exp(-x))``, without overflow for large negative x."""
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def silu(x: Float64) -> Float64:
    """``x * sigmoid(x)``, without overflow for large negative x."""
    return x * sigmoid(x)


def gelu(x: Float64) -> Float64:
    """``x * Phi(x)`` with the normal distribution function."""
    out: Float64 = x * 0.5 * (1.0 + _erf(x / math.sqrt(2.0)))
    return out


def gelu_tanh(x: Float64) -> Float64:
    """The tanh approximation of `gelu`. Source: Hendrycks & Gimpel 2016, "Gaussian Error Linear Units"."""
    return x * 0.5 * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


def relu2(x: Float64) -> Float64:
    """``max(x, 0)^2``."""
    return np.square(np.maximum(x, 0.0))


def relu(x: Float64) -> Float64:
    """``max(x, 0)``."""
    return np.maximum(x, 0.0)


def limited(limit: float | None, gate: Float64, up: Float64) -> tuple[Float64, Float64]:
    """Limit the elements of ``gate`` from above, and those of ``up`` on both sides; None changes nothing."""
    return (gate, up) if limit is None else (np.minimum(gate, limit), np.clip(up, -limit, limit))


def zero_below(threshold: float, x: Float64) -> Float64:
    """Set elements below a positive threshold to 0; a threshold of 0 changes nothing."""
    return np.where(x < threshold, 0.0, x) if threshold > 0 else x


def tanh(x: Float64) -> Float64:
    """The hyperbolic tangent."""
    out: Float64 = np.tanh(x)
    return out


def quick_gelu(x: Float64) -> Float64:
    """``x * sigmoid(1.702 x)``. Source: Hendrycks & Gimpel 2016, "Gaussian Error Linear Units"."""
    return x * sigmoid(1.702 * x)


ACTIVATIONS: dict[Activation, Callable[[Float64], Float64]] = {
    "silu": silu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "relu2": relu2,
    "relu": relu,
    "tanh": tanh,
    "quick_gelu": quick_gelu,
    "sigmoid": sigmoid,
    "identity": np.positive,
}
