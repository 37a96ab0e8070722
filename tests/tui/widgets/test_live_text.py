from __future__ import annotations

from rich.text import Text

from llmd_tui.widgets.live_text import LiveText
from tests.tui.pilots import Shown, text


async def test_other_text_of_the_same_height_arranges_nothing() -> None:
    app = Shown(live := LiveText())
    async with app.run_test(size=(20, 5)) as pilot:
        live.show_text("16 requests")
        await pilot.pause()
        arranged = live._layout_updates
        live.show_text(Text("15 requests", "bold"))
        await pilot.pause()
        assert text(app) == "15 requests"
        assert live._layout_updates == arranged


async def test_text_gets_as_many_lines_as_it_needs() -> None:
    app = Shown(live := LiveText())
    async with app.run_test(size=(20, 5)) as pilot:
        for shown, height in (("one", 1), ("more words than one line has", 2), ("a\nb\nc", 3), ("one", 1)):
            live.show_text(shown)
            await pilot.pause()
            assert live.size.height == height
