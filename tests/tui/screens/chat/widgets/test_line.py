from __future__ import annotations

from llmd_tui.screens.chat.widgets.line import Line
from tests.tui.screens.chat.widgets.shown_widget import alone


async def test_a_line_takes_no_room_while_it_has_nothing_to_say() -> None:
    line = Line()
    async with alone(line) as (pilot, _):
        assert line.size.height == 0
        line.say("[bold]two\nlines")
        await pilot.pause()
        assert (line.size.height, str(line.content)) == (2, "[bold]two\nlines")
        line.say("")
        assert not line.display
