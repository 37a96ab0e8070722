from __future__ import annotations

import numpy as np

from llmd.api import Indexer
from llmd.builtin.reference.indexer import choose_positions

OP = Indexer("q", "k", "w", "c", 0, 0, heads=2, head_dim=1, top_k=3)


def choose(keys: list[float], weights: tuple[float, float] = (1.0, 1.0)) -> list[float]:
    """Choose with the queries 1 and -1 of two heads."""
    query, head_weights = np.array([1, -1], np.float32), np.array(weights, np.float32)
    chosen: list[float] = choose_positions(OP, query, np.array(keys)[:, None], head_weights).tolist()
    return chosen


def test_the_highest_scores_are_chosen_and_their_positions_ascend() -> None:
    assert choose([0.5, 0.1, 0.4, 0.2, 0.3]) == [0, 2, 4]


def test_each_head_has_its_weight_after_negative_products_became_0() -> None:
    assert choose([0.5, -0.1, -0.4, 0.2, -0.3], (1.0, 2.0)) == [0, 2, 4], "scores 0.5, 0.2, 0.8, 0.2, 0.6"
    assert choose([0.5, -0.1, -0.4, 0.2, -0.3], (-1.0, 1.0)) == [1, 2, 4], "scores -0.5, 0.1, 0.4, -0.2, 0.3"


def test_of_equal_scores_the_later_positions_are_chosen() -> None:
    assert choose([0.0] * 5) == [2, 3, 4]
    assert choose([0.2, 0.1, 0.1, 0.1, 0.0]) == [0, 2, 3]


def test_a_short_context_is_chosen_whole() -> None:
    assert choose([0.1, 0.3]) == [0, 1, -1]
    assert choose([0.1, 0.3, 0.2]) == [0, 1, 2]
