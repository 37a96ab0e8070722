from __future__ import annotations

import pytest

from llmd_tui.widgets.words import seconds, share, waiting_reason


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (None, "-"),
        (3.4, "3 ms"),
        (1500, "1.5 s"),
        (61_000, "1 min 1 s"),
        (3 * 3600_000 + 60_000, "3 h 1 min"),
    ],
)
def test_durations_have_a_fitting_unit(milliseconds: float | None, text: str) -> None:
    assert seconds(milliseconds) == text


def test_reasons_are_words_and_unknown_ones_are_shown_as_they_are() -> None:
    assert waiting_reason("kv_blocks") == "waiting for KV blocks"
    assert waiting_reason("rain") == "waiting for rain"
    assert waiting_reason(None) == "waiting"
    assert share(0.915) == "92%"
