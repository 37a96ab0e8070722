from __future__ import annotations

from typing import Any

import pytest

from llmd.server.telemetry.device_reasons import why_device

BROKEN = {"cuda": "its driver is missing"}


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({}, "of the devices that can be used, it has the highest score"),
        (
            {"unusable": BROKEN},
            "of the devices that can be used, it has the highest score; cuda cannot be used: its driver is missing",
        ),
        ({"is_chosen": True, "unusable": BROKEN}, "the setting device names it"),
        ({"is_chosen": True, "is_split": True}, "the setting split assigns these layers to it"),
        ({"is_chosen": True, "lost": ("a", "b")}, "it took over from a and b, which failed"),
    ],
)
def test_a_device_has_a_reason_in_words(facts: dict[str, Any], reason: str) -> None:
    known: dict[str, Any] = {"is_split": False, "is_chosen": False, "lost": (), "unusable": {}}
    assert why_device(**known | facts) == reason
