from __future__ import annotations

from typing import Any

import pytest

from llmd.api.samplers import LLAMA_CPP_ORDER
from llmd.requests.fields import BadRequestError, RequestFields
from llmd.requests.sampler_order import read_order


def read(value: Any) -> tuple[str, ...] | None:
    return read_order(RequestFields({"samplers": value}), "samplers")


def test_orders_are_lists_of_names_or_llama_cpps_letters() -> None:
    names = ["penalties", "dry", *LLAMA_CPP_ORDER]
    assert read(names) == tuple(names)
    assert read("edskypmxt") == tuple(names)
    assert read(["nucleus", "typical_p", "temp", "min-p"]) == ("top_p", "typ_p", "temperature", "min_p")
    assert read([]) == ()
    assert read(None) is None


@pytest.mark.parametrize(
    "value",
    [5, ["top_k", 5], ["top_k", "top_k"], ["infill"], "kz", ["top_k", "penalties"], ["dry", "penalties"]],
)
def test_orders_that_cannot_be_had_are_refused(value: object) -> None:
    with pytest.raises(BadRequestError) as caught:
        read(value)
    assert caught.value.param == "samplers"
