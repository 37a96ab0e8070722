from __future__ import annotations

from textual.command import Hit

from llmd_tui.commands import LlmdCommands
from tests.tui.conftest import MakeTui, settled
from tests.tui.scripted_daemon import ScriptedDaemon, model
from tests.tui.test_app import First, Second


async def test_everything_is_in_the_palette(daemon: ScriptedDaemon, make_tui: MakeTui) -> None:
    tui = make_tui(First, Second)
    daemon.snapshot(models=(model("guide"), model("big", "loading")))
    async with tui.run_test() as pilot:
        await settled(pilot)
        provider = LlmdCommands(tui.screen)
        titles = [hit.text async for hit in provider.discover()]
        assert {
            "Open first",
            "Open second",
            "Chat with big",
            "Unload guide",
            "Diagnosis card",
            "Quit",
        } <= set(titles)
        assert "Unload big" not in titles
        assert "Theme nord" in titles


async def test_a_command_is_found_by_its_words(daemon: ScriptedDaemon, make_tui: MakeTui) -> None:
    tui = make_tui(First, Second)
    daemon.snapshot(models=(model("guide"),))
    daemon.posts["/llmd/stop"] = {}
    async with tui.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        (hit,) = [hit async for hit in LlmdCommands(tui.screen).search("unload")]
        assert isinstance(hit, Hit)
        hit.command()
        await settled(pilot)
        assert daemon.asked == [("/llmd/stop", {"model": "guide"})]
