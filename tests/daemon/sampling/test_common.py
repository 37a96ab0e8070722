from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from llmd.api.random import Purpose
from llmd.api.samplers import (
    DEFAULT_ORDER,
    LLAMA_CPP_ORDER,
    OLLAMA_ORDER,
    DynamicTemperature,
    Mirostat,
    SamplingParams,
    Xtc,
)
from llmd.sampling.common import CommonRows, common_chain
from llmd.sampling.philox import uniform
from llmd.sampling.sampler_chain import RowContext, draw, selection_temperature
from llmd.sampling.shortlist import of_row
from tests.daemon.sampling.closed_form import make_row, step_result

COMMON: list[dict[str, Any]] = [
    {},
    {"temperature": 0.6},
    {"top_k": 3},
    {"top_k": 100, "temperature": 3.0},
    {"top_p": 0.8, "temperature": 1.4},
    {"min_p": 0.05, "temperature": 2.0},
    {"top_k": 30, "top_p": 0.9, "min_p": 0.02, "temperature": 1.2},
]


@pytest.mark.parametrize(
    "order", [DEFAULT_ORDER, LLAMA_CPP_ORDER, OLLAMA_ORDER], ids=["vllm", "llama.cpp", "ollama"]
)
@pytest.mark.parametrize("changes", COMMON, ids=str)
def test_rows_draw_what_the_chain_draws_one_by_one(changes: dict[str, Any], order: Any) -> None:
    params = SamplingParams(seed=8, order=order, **changes)
    common = common_chain(params)
    assert common is not None
    rows = [make_row(seed) for seed in range(300)]
    result = step_result(rows, [selection_temperature(params)] * len(rows))
    u = np.array([uniform(8, n, 0, Purpose.SAMPLE) for n in range(len(rows))])
    table = np.tile(common.columns(), (len(rows), 1))
    index = CommonRows(table, u).draw(result.edited, result.edited_logsumexp)
    known = np.flatnonzero(index < 64).tolist()
    for n in known:
        drawn = draw(of_row(rows[n]), params, RowContext(n, len(rows[n]), 1.0, 0.0))
        assert drawn is not None
        assert result.ids[n, index[n]] == drawn.token
    assert bool(known) is (params.top_k <= 64)


@pytest.mark.parametrize(
    "changes",
    [
        {"mirostat": Mirostat(2)},
        {"dynamic_temperature": DynamicTemperature(0.1)},
        {"typical_p": 0.5},
        {"top_n_sigma": 1.0},
        {"xtc": Xtc(0.5, 0.1)},
        {"top_k": 5, "top_p": 0.5, "order": ("temperature", "top_p", "top_k")},
        {"temperature": 2.0, "top_p": 0.5, "min_p": 0.1, "order": ("top_p", "temperature", "min_p")},
    ],
    ids=str,
)
def test_other_chains_are_not_common(changes: dict[str, Any]) -> None:
    assert common_chain(SamplingParams(seed=0, **changes)) is None
