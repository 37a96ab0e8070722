from __future__ import annotations

from typing import Any

import pytest

from llmd.api.messages import SamplingParams
from llmd.api.samplers import LLAMA_CPP_ORDER, DynamicTemperature, Mirostat, Xtc
from llmd.sampling.chain import Place, active_order, draw, is_greedy, selection_temperature
from llmd.sampling.shortlist import of_candidates, of_row
from tests.daemon.sampling.closed_form import make_row, step_result

LAST: dict[str, Any] = {"order": LLAMA_CPP_ORDER, "temperature": 0.7}


def params(**changes: Any) -> SamplingParams:
    return SamplingParams(seed=0, **changes)


def test_only_samplers_that_change_something_run() -> None:
    assert active_order(params()) == ()
    assert active_order(params(temperature=0.5, top_p=0.9, min_p=0.1)) == ("temperature", "min_p", "top_p")
    assert active_order(params(typical_p=0.9, top_n_sigma=1.0, xtc=Xtc(0.0, 0.1))) == ("top_n_sigma", "typ_p")
    assert active_order(params(top_p=0.9, top_k=3, **LAST)) == ("top_k", "top_p", "temperature")
    assert active_order(params(top_p=0.9, order=("top_k",))) == ()
    assert active_order(params(top_p=0.9, mirostat=Mirostat(2))) == ("temperature",)


@pytest.mark.parametrize(
    ("changes", "temperature"),
    [
        ({"temperature": 0.7}, 0.7),
        ({"temperature": 0.0}, 1.0),
        ({"temperature": 0.7, "top_p": 0.5}, 0.7),
        ({"temperature": 0.7, "dynamic_temperature": DynamicTemperature(0.1)}, 1.0),
        ({"temperature": 0.7, "mirostat": Mirostat(2)}, 0.7),
        (LAST, 0.7),
        ({"top_k": 5, "min_p": 0.1, **LAST}, 0.7),
        ({"top_p": 0.5, **LAST}, 1.0),
        ({"typical_p": 0.5, **LAST}, 1.0),
        ({"xtc": Xtc(0.5, 0.1), **LAST}, 1.0),
    ],
    ids=str,
)
def test_the_log_sum_exp_is_asked_for_at_the_temperature_that_needs_it(
    changes: dict[str, Any], temperature: float
) -> None:
    assert selection_temperature(params(**changes)) == temperature


def test_a_temperature_of_zero_is_greedy_unless_it_is_dynamic() -> None:
    assert is_greedy(params(temperature=0.0, top_p=0.5))
    assert not is_greedy(params(temperature=0.0, dynamic_temperature=DynamicTemperature(1.0)))


def test_a_draw_from_candidates_is_that_from_the_row_or_none() -> None:
    row = make_row(4, spread=1.0)
    result = step_result([row], [1.0], kept=20)
    found = []
    for position in range(200):
        place = Place(position, len(row), 1.0, float(result.edited_logsumexp[0]))
        whole = draw(of_row(row), params(), place)
        listed = draw(of_candidates(result.ids[0], result.edited[0]), params(), place)
        assert listed in (None, whole)
        found.append(listed is None)
    assert 0 < sum(found) < 200
