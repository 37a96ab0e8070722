from __future__ import annotations

from llmd_tui.screens.models.pull_progress import PullProgress
from llmd_tui.screens.models.pulls_pane import PullsPane
from tests.tui.pilots import Shown, text


async def test_a_pane_is_hidden_without_pulls() -> None:
    app = Shown(pane := PullsPane())
    async with app.run_test(size=(60, 5)) as pilot:
        pane.show([PullProgress("org/x")])
        await pilot.pause()
        assert "Pulling org/x" in text(app)
        pane.show([])
        await pilot.pause()
        assert text(app) == ""
        assert not pane.has_class("-running")
