"""Heads that are narrower and wider than a work group's threads divide."""

from __future__ import annotations

from collections.abc import Callable

import pytest

NAMES = (
    "encoder_attention/4x12",
    "encoder_attention/1x64",
    "encoder_attention/3x20",
)


@pytest.mark.parametrize("name", NAMES)
def test_results_are_those_of_the_reference_in_any_batch(check: Callable[[str], None], name: str) -> None:
    check(name)
