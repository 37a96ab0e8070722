"""Lookups in tables of each plain format."""

from __future__ import annotations

from collections.abc import Callable

import pytest

NAMES = (
    "embed/f32",
    "embed/f16",
    "embed/bf16",
    "embed/f16-columns",
    "embed_position/f16",
    "embed_token_type/bf16-mixed",
)


@pytest.mark.parametrize("name", NAMES)
def test_results_are_those_of_the_reference_in_any_batch(check: Callable[[str], None], name: str) -> None:
    check(name)
