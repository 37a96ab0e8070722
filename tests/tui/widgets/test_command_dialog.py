from __future__ import annotations

from textual.widgets import Static

from llmd_tui import actions
from llmd_tui.widgets.command_dialog import CommandDialog
from tests.tui.pilots import Shown, press, text


class Watched(Shown):
    def on_copy_text(self, message: actions.CopyText) -> None:
        self.seen.append(message.text)


async def test_the_command_under_the_cursor_is_copied() -> None:
    app = Watched(Static())
    async with app.run_test(size=(60, 16)) as pilot:
        for keys in (("y",), ("down", "enter"), ("escape",)):
            await app.push_screen(CommandDialog("Convert", "Type one of these:", ["llmd [a]", "llmd\n b"]))
            await pilot.pause()
            assert "llmd [a]" in text(app)
            await press(pilot, *keys)
            assert "Type one of these" not in text(app)
        assert app.seen == ["llmd [a]", "llmd b"]
