from __future__ import annotations

from textual.widgets import Static

from llmd_tui import actions
from llmd_tui.widgets.details import Details, DetailsDialog, Section, as_text
from tests.tui.pilots import Shown, lines, press, text

SECTIONS = [
    Section("Name", "guide"),
    Section("Empty", " \n"),
    Section("Template", "line [1]\n\x1bline 2"),
    Section("Last", "x"),
]


class Watched(Shown):
    def on_copy_text(self, message: actions.CopyText) -> None:
        self.seen.append(message.text)


def test_short_texts_follow_their_heading_and_empty_ones_are_left_out() -> None:
    assert as_text(SECTIONS).plain == "Name  guide\nTemplate\nline [1]\nline 2\n\nLast  x"


async def test_a_pane_is_as_high_as_its_sections() -> None:
    pane = Details()
    app = Shown(pane)
    async with app.run_test(size=(40, 12)) as pilot:
        pane.show([Section("Name", "guide")])
        await pilot.pause()
        assert pane.size.height == 1
        assert "  Name  guide" in lines(app)


async def test_a_dialog_scrolls_and_copies_everything() -> None:
    app = Watched(Static())
    async with app.run_test(size=(60, 16)) as pilot:
        long = [*SECTIONS, Section("Licence", "\n".join(f"line {number}" for number in range(40)))]
        await app.push_screen(DetailsDialog("guide", long))
        await pilot.pause()
        assert "line 39" not in text(app)
        await press(pilot, "end", "y")
        assert "line 39" in text(app)
        assert app.seen == [as_text(long).plain]
        await press(pilot, "escape")
        assert "line" not in text(app)
