from __future__ import annotations

from typing import Any

import pytest

from llmd.api.samplers import DynamicTemperature, Mirostat, SamplingParams, Xtc
from llmd.sampling.common import common_chain


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
