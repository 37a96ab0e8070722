"""Norms of rows and of their pieces."""

from __future__ import annotations

from collections.abc import Callable

import pytest

NAMES = (
    "norm/rms",
    "norm/rms-offset",
    "norm/rms-plain",
    "norm/rms-heads",
    "norm/rms-own",
    "norm/layer-own",
    "norm/layer",
    "norm/layer-bias",
)


@pytest.mark.parametrize("name", NAMES)
def test_results_are_those_of_the_reference_in_any_batch(check: Callable[[str], None], name: str) -> None:
    check(name)
