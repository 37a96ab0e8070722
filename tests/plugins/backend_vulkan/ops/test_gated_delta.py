"""States of linear attention that each row of a sequence changes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

NAMES = ("gated_delta/grouped", "gated_delta/elements", "gated_delta/negative")
SLOW = ("gated_delta/tiled", "gated_delta/one-tap")


@pytest.mark.parametrize(
    "name", [*NAMES, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in SLOW)]
)
def test_results_are_those_of_the_reference_in_any_batch(check: Callable[[str], None], name: str) -> None:
    check(name)
