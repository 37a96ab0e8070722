"""The router and the experts of the reference, by examples that can be checked by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from llmd.api import Experts, Router, TensorRef
from llmd.builtin.reference.experts import ExpertTensors, RouterTensors, expert_weights, largest, mix
from llmd.builtin.reference.weights import PlainMatrix

FOUR = TensorRef("router", (4, 4))
LOGITS = np.log(np.array([[1.0, 4.0, 2.0, 1.0]], np.float32))


def routed(router: Router, correction: list[float] | None = None, **arrays: list[float]) -> list[Any]:
    """Return the weights of a row whose products are `LOGITS`."""
    named = {name: np.array(values) for name, values in arrays.items()}
    tensors = RouterTensors(
        np.eye(4),
        named.get("bias"),
        None if correction is None else np.array(correction),
        named.get("gains"),
    )
    (row,) = expert_weights(router, tensors, LOGITS)
    return [pytest.approx(float(weight), abs=1e-6) for weight in row]


def test_weights_are_the_scores_of_the_chosen_experts() -> None:
    assert routed(Router("x", "r", FOUR, 2, normalized=False)) == [0, 0.5, 0.25, 0]


def test_normalized_weights_add_up_to_the_factor() -> None:
    assert routed(Router("x", "r", FOUR, 2, factor=3.0)) == [0, 2.0, 1.0, 0]


def test_of_equal_experts_the_first_is_chosen() -> None:
    assert routed(Router("x", "r", FOUR, 3, normalized=False)) == [0.125, 0.5, 0.25, 0]


def test_a_correction_chooses_but_does_not_weigh() -> None:
    chosen = routed(Router("x", "r", FOUR, 2, normalized=False), correction=[0, 0, -1, 1])
    assert chosen == [0, 0.5, 0, 0.125]


def test_sigmoids_do_not_depend_on_each_other() -> None:
    router = Router("x", "r", FOUR, 4, "sigmoid", normalized=False)
    assert routed(router) == [1 / 2, 4 / 5, 2 / 3, 1 / 2]


def test_scale_bias_and_gains_have_their_places() -> None:
    router = Router("x", "r", FOUR, 4, "sigmoid", normalized=False, scale=0.5)
    bias, gains = [0.0, 0.0, 0.0, float(np.log(3))], [1.0, 2.0, 1.0, 4.0]
    halves = [1 / 2, 2 * 2 / 3, 2**0.5 / (1 + 2**0.5), 4 * 3 / 4]
    assert routed(router, bias=bias, gains=gains) == halves


@pytest.mark.parametrize(("score", "group"), [("largest", 0), ("sum_of_two", 1)])
def test_only_experts_of_the_best_groups_are_chosen(score: str, group: int) -> None:
    router = Router("x", "r", FOUR, 1, normalized=False, groups=2, top_groups=1, group_score=score)  # type: ignore[arg-type]
    weights = routed(router, correction=[-0.5, 0, 0, 0.125])
    assert weights == ([0, 0.5, 0, 0] if group == 0 else [0, 0, 0.25, 0])


def test_the_largest_are_found_in_each_row() -> None:
    assert largest(np.array([[1.0, 3, 3], [2, 0, 1]]), 2).tolist() == [
        [False, True, True],
        [True, False, True],
    ]


def experts(**fields: object) -> Experts:
    stack = TensorRef("w", (2, 1, 1), is_stack=True)
    options = {"activation": "relu", "top_k": 2} | fields
    return Experts("x", "r", "y", stack, stack, stack, **options)  # type: ignore[arg-type]


def ones(*factors: float) -> tuple[PlainMatrix, ...]:
    return tuple(PlainMatrix(np.array([[factor]])) for factor in factors)


def test_the_output_is_the_weighted_sum_of_the_experts() -> None:
    tensors = ExpertTensors(ones(1, 1), None, ones(1, 2), None, ones(1, 10), None)
    x = np.array([[2.0], [3.0]], np.float32)
    weights = np.array([[0.5, 0.25], [0, 1]], np.float32)
    # 2 * 2 * 1, 2 * 4 * 10; 3 * 6 * 10
    assert mix(experts(), tensors, x, weights).tolist() == [[0.5 * 4 + 0.25 * 80], [180]]


def test_limit_and_offset_apply_between_the_matrices() -> None:
    biases = (np.array([[0.0], [0.0]]), np.array([[-9.0], [0.0]]), np.array([[0.25], [0.0]]))
    tensors = ExpertTensors(ones(1, 1), biases[0], ones(1, 1), biases[1], ones(1, 1), biases[2])
    x, weights = np.array([[5.0]], np.float32), np.array([[1, 0]], np.float32)
    # gate 5 becomes 3, up -4 becomes -3 and then -2
    assert mix(experts(limit=3.0, offset=1.0), tensors, x, weights).tolist() == [[-6 + 0.25]]


def test_without_a_gate_the_activation_is_that_of_up() -> None:
    tensors = ExpertTensors(None, None, ones(-1, 1), None, ones(7, 1), None)
    x, weights = np.array([[2.0], [-2.0]], np.float32), np.array([[1, 0], [1, 0]], np.float32)
    assert mix(experts(), tensors, x, weights).tolist() == [[0.0], [14.0]]
