"""Both styles of rotation, of all and of some elements."""

from __future__ import annotations

from collections.abc import Callable

import pytest

NAMES = (
    "rope/half",
    "rope/interleaved",
    "rope/partial",
    "rope/factor",
    "rope/stride",
)


@pytest.mark.parametrize("name", NAMES)
def test_results_are_those_of_the_reference_in_any_batch(check: Callable[[str], None], name: str) -> None:
    check(name)
