"""Mixtures of experts: the weights that a router gives to experts, and their weighted sum."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.expert_ops import Experts, Router
from llmd.builtin.reference.numerics import ACTIVATIONS, limited, sigmoid, softplus
from llmd.builtin.reference.weights import Float32, Float64, Matrix

LEAST_SUM = 1e-20
"""Added to the sum of a row's scores before they are divided by it: sigmoids can all be 0."""


class RouterTensors(msgspec.Struct, frozen=True):
    """The tensors of a `Router`."""

    weight: Float64
    bias: Float64 | None
    correction: Float64 | None
    gains: Float64 | None


def expert_weights(op: Router, of: RouterTensors, x: Float32, given: Float32 | None = None) -> Float32:
    """Return the weight of each expert for each row, ``[rows, experts]``; 0 for experts not used."""
    logits = np.stack([of.weight @ row for row in x.astype(np.float64)]) * op.scale
    scores = _scores(op, logits if of.bias is None else logits + of.bias)
    if given is None:
        preference = scores if of.correction is None else scores + of.correction
        weights = np.where(largest(_in_top_groups(op, preference), op.top_k), scores, 0.0)
    else:
        weights = scores * _times_given(given, scores.shape[1])
    if op.normalized:
        weights /= weights.sum(axis=1, keepdims=True) + LEAST_SUM
    weights *= op.factor
    weighted: Float32 = (weights if of.gains is None else weights * of.gains).astype(np.float32)
    return weighted


def largest(values: Float64, count: int) -> NDArray[np.bool_]:
    """Return which elements are among the ``count`` largest of their row; of equal ones, the first."""
    order = np.argsort(-values, axis=1, kind="stable")[:, :count]
    found: NDArray[np.bool_] = np.zeros(values.shape, np.bool_)
    np.put_along_axis(found, order, True, axis=1)
    return found


def _times_given(given: Float32, num_experts: int) -> NDArray[np.int64]:
    """Return how often each row is given each expert, ``[rows, experts]``."""
    return np.stack([np.bincount(row, minlength=num_experts) for row in given.astype(np.int64)])


def _scores(op: Router, logits: Float64) -> Float64:
    if op.score == "sigmoid":
        return sigmoid(logits)
    if op.score == "sqrt_softplus":
        return np.sqrt(softplus(logits))
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    scores: Float64 = powers / powers.sum(axis=1, keepdims=True)
    return scores


def _in_top_groups(op: Router, preference: Float64) -> Float64:
    """Return the preference with -inf for experts outside the best groups."""
    if op.groups == 1:
        return preference
    grouped = preference.reshape(len(preference), op.groups, -1)
    best = np.sort(grouped, axis=2)[..., ::-1]
    group_scores = best[..., 0] if op.group_score == "largest" else best[..., :2].sum(axis=2)
    kept = largest(group_scores, op.top_groups)
    return np.where(kept[..., None], grouped, -np.inf).reshape(preference.shape)


class ExpertTensors(msgspec.Struct, frozen=True):
    """The tensors of `Experts`: a matrix for each expert, and biases ``[experts, out]``."""

    gate: Sequence[Matrix] | None
    gate_bias: Float64 | None
    up: Sequence[Matrix]
    up_bias: Float64 | None
    down: Sequence[Matrix]
    down_bias: Float64 | None


def mix(op: Experts, of: ExpertTensors, x: Float32, weights: Float32) -> Float32:
    """Return the sum of the experts' outputs, times their weights ``[rows, experts]``, for each row."""
    out = np.zeros((len(x), op.down.view_shape[1]))
    for row, expert in np.argwhere(weights):
        out[row] += weights[row, expert].astype(np.float64) * _expert(op, of, x[row], int(expert))
    return out.astype(np.float32)


def _expert(op: Experts, of: ExpertTensors, row: Float32, expert: int) -> Float64:
    inner = _product(of.up, of.up_bias, row, expert)
    if of.gate is None:
        activated = ACTIVATIONS[op.activation](inner)
    else:
        gate, inner = limited(op.limit, _product(of.gate, of.gate_bias, row, expert), inner)
        activated = ACTIVATIONS[op.activation](gate) * (inner + op.offset)
    return _product(of.down, of.down_bias, activated.astype(np.float32), expert, rounds=False)


def _product(
    stack: Sequence[Matrix], biases: Float64 | None, row: Float32, expert: int, *, rounds: bool = True
) -> Float64:
    product = stack[expert].multiply(row)
    if biases is not None:
        product = product + biases[expert]
    return product.astype(np.float32).astype(np.float64) if rounds else product
