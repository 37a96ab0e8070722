from __future__ import annotations

from typing import Any

import pytest

from llmd.api.messages import Load, StageSpec
from llmd.server.telemetry.device_reasons import why_device

BROKEN = {"cuda": "its driver is missing"}
SPLIT = (StageSpec("cpu", "0", "1"),)


@pytest.mark.parametrize(
    ("asked", "facts", "reason"),
    [
        ({}, {}, "of the devices that can be used, it has the highest score"),
        ({}, {"is_measured": True}, "of the devices that can be used, it answers fastest"),
        (
            {},
            {"unusable": BROKEN},
            "of the devices that can be used, it has the highest score; cuda cannot be used: its driver is missing",
        ),
        (
            {},
            {"is_divided": True, "is_measured": True},
            "no single one of the devices that can be used has room for the model, and this division answers fastest",
        ),
        (
            {"device": "cuda:1,cpu"},
            {"is_measured": True},
            "of the devices that the setting device names, it answers fastest",
        ),
        ({"device": "cpu"}, {"unusable": BROKEN}, "the setting device names it"),
        ({"device": "cpu", "stages": SPLIT}, {}, "the setting split assigns these layers to it"),
        (
            {"gpu_layers": 20},
            {"is_divided": True},
            "the setting gpu_layers divides the model, with 20 layers on graphics cards",
        ),
        (
            {"cpu_experts": 3},
            {"is_divided": True},
            "the setting cpu_experts keeps the experts of 3 layers in main memory",
        ),
        ({"device": "c"}, {"lost": ("a", "b")}, "it took over from a and b, which failed"),
    ],
)
def test_a_device_has_a_reason_in_words(asked: dict[str, Any], facts: dict[str, Any], reason: str) -> None:
    assert why_device(Load("m", **asked), **facts) == reason
