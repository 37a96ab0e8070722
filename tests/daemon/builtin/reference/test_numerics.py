"""Each op agrees with a different form of its formula."""

from __future__ import annotations

import cmath
import math

import numpy as np
import pytest

from llmd.api import Precision, RopeTable
from llmd.builtin.reference import numerics
from llmd.builtin.reference.rounding import round_to


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_rms_norm_makes_the_root_mean_square_one() -> None:
    x = draw(3, 50) * 7
    out = numerics.rms_norm(x, np.ones(50), 0.0)
    assert np.sqrt(np.mean(out.astype(np.float64) ** 2, axis=1)) == pytest.approx([1, 1, 1], abs=1e-6)


def test_rms_norm_adds_eps_under_the_root_and_scales() -> None:
    out = numerics.rms_norm(np.array([[3.0, 4.0]], np.float32), np.array([2.0, 1.0]), 0.5)
    assert out[0].tolist() == pytest.approx([6 / math.sqrt(13), 4 / math.sqrt(13)], rel=1e-6)


def test_layer_norm_centres_scales_and_shifts() -> None:
    out = numerics.layer_norm(
        np.array([[1.0, 3.0]], np.float32), np.array([1.0, 2.0]), np.array([0.5, 0.0]), 3.0
    )
    assert out[0].tolist() == pytest.approx([-0.5 + 0.5, 0.5 * 2], rel=1e-6)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotation_is_a_complex_product(*, interleaved: bool) -> None:
    x, table = draw(2, 3, 8), RopeTable((1.0, 0.3), factor=1.5)
    out = numerics.rotate(x, np.array([5, 11], np.int32), table, interleaved=interleaved)
    pairs = [(0, 1), (2, 3)] if interleaved else [(0, 2), (1, 3)]
    for row, position in enumerate((5, 11)):
        for head in range(3):
            for (a, b), frequency in zip(pairs, table.inv_freq, strict=True):
                turned = complex(x[row, head, a], x[row, head, b]) * cmath.rect(1.5, position * frequency)
                assert out[row, head, [a, b]].tolist() == pytest.approx(
                    [turned.real, turned.imag], rel=1e-5, abs=1e-6
                )
    assert np.array_equal(out[..., 4:], x[..., 4:])


def test_attention_is_the_weighted_mean_of_the_values() -> None:
    q, k, v = (
        draw(*shape, seed=s).astype(np.float64) for s, shape in enumerate([(4, 6), (9, 2, 6), (9, 2, 6)])
    )
    out = numerics.attend(q, k, v, 0.7, 3.0)
    for head in range(4):
        scores = [3.0 * math.tanh(float(q[head] @ k[t, head // 2]) * 0.7 / 3.0) for t in range(9)]
        total = sum(math.exp(s) for s in scores)
        mean = sum(math.exp(s) / total * v[t, head // 2] for t, s in enumerate(scores))
        assert out[head] == pytest.approx(mean, rel=1e-12)


def test_sums_are_those_that_the_weights_are_divided_by() -> None:
    q, k, v = (
        draw(*shape, seed=s).astype(np.float64) for s, shape in enumerate([(4, 6), (9, 2, 6), (9, 2, 6)])
    )
    sinks = np.array([0.5, -1.0, 2.0, 0.0])
    sums = numerics.attention_sums(q, k, 0.7, 3.0, "f32", sinks)
    for head in range(4):
        scores = [3.0 * math.tanh(float(q[head] @ k[t, head // 2]) * 0.7 / 3.0) for t in range(9)]
        total = sum(map(math.exp, [*scores, sinks[head]]))
        assert sums[head] == pytest.approx(math.log(total), rel=1e-12)
    assert numerics.attend(q, k[:0], v[:0], 0.7, None).tolist() == np.zeros((4, 6)).tolist()
    assert numerics.attention_sums(q, k[:0], 0.7, None).tolist() == [-math.inf] * 4
    assert numerics.attention_sums(q, k[:0], 0.7, None, "f32", sinks).tolist() == sinks.tolist()


def test_softplus_of_large_numbers_is_finite() -> None:
    np.testing.assert_allclose(numerics.softplus(np.array([-900.0, 0.0, 900.0])), [0.0, np.log(2), 900.0])


@pytest.mark.parametrize(("precision", "eps"), [("f16", 2.0**-11), ("bf16", 2.0**-8)])
def test_attention_rounds_the_query_and_the_weights_before_they_are_divided_by_their_sum(
    precision: Precision, eps: float
) -> None:
    q = np.array([[1 + eps]])  # halfway between two numbers of the precision
    k, v = np.array([[[0.0]], [[-1.0]]]), np.array([[[0.0]], [[1.0]]])
    weight = math.exp(-1.0)
    rounded = float(round_to(precision, np.array(weight)))
    assert rounded != weight
    out = numerics.attend(q, k, v, 1.0, None, precision)
    assert out.item() == pytest.approx(rounded / (1 + weight), rel=1e-14)


def test_attention_survives_scores_that_overflow_an_exponential() -> None:
    q = np.full((1, 2), 1e4)
    out = numerics.attend(q, np.full((3, 1, 2), 1e4), np.ones((3, 1, 2)), 1.0, None)
    assert out == pytest.approx(np.ones((1, 2)))


@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("silu", lambda z: z / (1 + math.exp(-z))),
        ("gelu", lambda z: z * 0.5 * math.erfc(-z / math.sqrt(2))),
        ("gelu_tanh", lambda z: 0.5 * z * (1 + math.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))),
        ("relu2", lambda z: max(z, 0.0) ** 2),
        ("relu", lambda z: max(z, 0.0)),
        ("tanh", math.tanh),
        ("sigmoid", lambda z: 1 / (1 + math.exp(-z))),
        ("identity", lambda z: z),
    ],
)
def test_activations_follow_their_formula(name: str, formula: object) -> None:
    x = np.linspace(-6, 6, 25)
    expected = [formula(float(z)) for z in x]  # type: ignore[operator]
    assert numerics.ACTIVATIONS[name](x) == pytest.approx(expected, rel=1e-12, abs=1e-15)  # type: ignore[index]


def test_what_is_below_a_threshold_becomes_zero() -> None:
    x = np.array([-1.0, 0.0, 0.49, 0.5, 2.0])
    assert numerics.zero_below(0.5, x).tolist() == [0.0, 0.0, 0.0, 0.5, 2.0]
    assert numerics.zero_below(0.0, x).tolist() == x.tolist()


def test_silu_does_not_overflow_far_below_zero() -> None:
    assert numerics.silu(np.array([-1e4])) == pytest.approx([0.0])


def test_soft_cap_bounds_and_keeps_small_values() -> None:
    assert numerics.soft_cap(np.array([1e6, 1e-3]), 30.0) == pytest.approx([30.0, 1e-3])
    assert numerics.soft_cap(np.array([1e6]), None) == pytest.approx([1e6])
