"""States of Mamba-2 that each row of a sequence changes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

NAMES = ("state_space/bounds", "state_space/negative")
SLOW = ("state_space/grouped", "state_space/one-group", "state_space/one-tap")


@pytest.mark.parametrize(
    "name", [*NAMES, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in SLOW)]
)
def test_results_are_those_of_the_reference_in_any_batch(check: Callable[[str], None], name: str) -> None:
    check(name)
