"""The ops of RWKV-7, which keep parts of the state of a layer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from llmd.api import StageLimits
from llmd.models.lowering import lower
from llmd.testing.time_mix_cases import time_mix_cases
from llmd_backend_vulkan.ops.states import DECAYS, MIXED, SHARES, states_words

NAMES = ("token_shift/several", "generalized_delta/mixed")
SLOW = (
    "token_shift/one",
    "token_shift/wide",
    "generalized_delta/even",
    "generalized_delta/odd",
    "generalized_delta/wide",
)


@pytest.mark.parametrize(
    "name", [*NAMES, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in SLOW)]
)
def test_results_are_those_of_the_reference_in_any_batch(check: Callable[[str], None], name: str) -> None:
    check(name)


def test_rows_have_memory_for_what_they_are_turned_into() -> None:
    plan = next(case.plan for case in time_mix_cases() if case.name == "generalized_delta/odd")
    program = lower(plan, 1, 2, format_of=lambda _kind, _ref: "f32")
    words = states_words(program, StageLimits(10, 1, 1))
    assert words == {MIXED: 10 * 120, DECAYS: 10 * 40, SHARES: 0}
