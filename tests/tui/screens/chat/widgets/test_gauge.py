from __future__ import annotations

import pytest

from llmd_tui.screens.chat.room import Room
from llmd_tui.screens.chat.widgets.gauge import Gauge
from tests.tui.screens.chat.widgets.shown_widget import alone


@pytest.mark.parametrize(
    ("width", "words"),
    [
        (70, ["guide", "■■■■■■······", "50/100", "tokens,", "an", "answer", "may", "have", "50"]),
        (47, ["guide", "50/100", "tokens,", "an", "answer", "may", "have", "50"]),
        (42, ["gu…", "50/100", "tokens,", "an", "answer", "may", "have", "50"]),
    ],
)
async def test_the_figures_matter_more_than_the_name(width: int, words: list[str]) -> None:
    gauge = Gauge()
    async with alone(gauge, (width, 5)):
        gauge.describe("guide")
        assert gauge.render().plain.split() == ["guide"]
        gauge.show(Room(50, 100))
        assert gauge.render().plain.split() == words
        assert len(gauge.render().plain) == gauge.size.width


async def test_too_long_is_said_in_bold_words() -> None:
    gauge = Gauge()
    async with alone(gauge):
        gauge.show(Room(130, 100))
        line = gauge.render()
        assert "130/100 tokens: too long by 31" in line.plain
        assert any("bold" in str(span.style) for span in line.spans)
