"""Attention to chosen positions on a simulated card has the bits of ordinary attention if all are chosen."""

from __future__ import annotations

import numpy as np
import pytest

from llmd.testing.conformance import cases_for
from llmd.testing.runs import run
from llmd.testing.workload import all_at_once, ragged
from llmd_backend_cuda.device import describe
from tests.conformance.test_chosen_positions import choosing, without_choice
from tests.cuda.simulated import CARD, NEEDS_COMPILER, open_device

pytestmark = NEEDS_COMPILER

CASES = {case.name: case for case in cases_for(describe(CARD))}


@pytest.mark.parametrize(
    "name",
    [
        "indexer/odd-f16-precision-f16",
        "indexer/even-f32-precision-f16",
        pytest.param("indexer/long-f16-precision-f16", marks=pytest.mark.exhaustive),
        pytest.param("merge_attention/chosen-f16-precision-f16", marks=pytest.mark.exhaustive),
        pytest.param("merge_attention/long-chosen-precision-f16", marks=pytest.mark.exhaustive),
    ],
)
def test_all_positions_give_the_bits_of_ordinary_attention(name: str) -> None:
    device = open_device()
    whole = choosing(CASES[name], 1100)
    for schedule in (all_at_once(whole), ragged(whole)):
        chosen, plain = (run(device, case, schedule).rows for case in (whole, without_choice(whole)))
        assert chosen.keys() == plain.keys()
        assert all(np.array_equal(chosen[place], plain[place]) for place in plain)
    limited = run(device, CASES[name], ragged(CASES[name])).rows
    assert any(not np.array_equal(limited[place], plain[place]) for place in plain)
