from __future__ import annotations

from textual.app import App, ComposeResult

from llmd_tui.screens.kv.block_map import BlockMap
from llmd_tui.screens.kv.blocks import Group


class Map(App[None]):
    def compose(self) -> ComposeResult:
        yield BlockMap()


async def test_large_pools_have_marks_of_several_blocks() -> None:
    async with Map().run_test(size=(42, 9)) as pilot:
        shown = pilot.app.query_one(BlockMap)
        shown.show(Group("all", 16, 1000, free=250, used=750, map=[("used", 750), ("free", 250)]))
        await pilot.pause()
        text = shown.render().plain
        assert "A mark is 5 blocks of 16 tokens; 75% of 1000 hold something." in text
        assert text.count("▓") == 1 + 150
        assert text.count("·") == 1 + 50
