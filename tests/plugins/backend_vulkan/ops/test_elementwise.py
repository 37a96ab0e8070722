"""Add, every activation, gates, limits and factors."""

from __future__ import annotations

from collections.abc import Callable

import pytest

NAMES = (
    "add",
    "glu/silu",
    "glu/gelu",
    "glu/gelu_tanh",
    "glu/relu2",
    "glu/relu",
    "glu/tanh",
    "glu/relu-threshold",
    "glu/limit",
    "activate/silu",
    "activate/tanh",
    "gate/1",
    "gate/4",
    "gate/48",
    "multiply",
)


@pytest.mark.parametrize("name", NAMES)
def test_results_are_those_of_the_reference_in_any_batch(check: Callable[[str], None], name: str) -> None:
    check(name)
