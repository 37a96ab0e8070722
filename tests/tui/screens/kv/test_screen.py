"""The map of KV blocks on a screen."""

from __future__ import annotations

from typing import Any

import pytest
from textual.widgets import Static

from llmd_tui.screens.kv.block_map import BlockMap
from llmd_tui.screens.kv.screen import KVScreen
from tests.tui.conftest import MakeTui, settled
from tests.tui.pictures import THEMES, assert_picture
from tests.tui.pilots import text, until
from tests.tui.scripted_daemon import ScriptedDaemon, model


def pool(name: str = "all", shared: int = 120) -> dict[str, Any]:
    runs = [["used", 400], ["shared", shared], ["cached", 300], ["free", 500], ["used", 80], ["free", 1000]]
    counts = {"used": 480, "shared": shared, "cached": 300, "free": 1500}
    return {"group": name, "block_len": 16, "blocks": sum(counts.values()), "map": runs, **counts}


def answer(daemon: ScriptedDaemon, *groups: dict[str, Any]) -> None:
    daemon.gets["/llmd/kv"] = {"model": "guide", "groups": list(groups)}


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
async def test_looks_as_pictured(
    daemon: ScriptedDaemon, make_tui: MakeTui, size: tuple[int, int], theme: str
) -> None:
    tui = make_tui(KVScreen)
    daemon.snapshot(models=(model("guide"),))
    answer(daemon, pool())
    async with tui.run_test(size=size) as pilot:
        tui.theme = theme
        await settled(pilot)
        tui.screen.begin_fetch()  # type: ignore[attr-defined]
        await settled(pilot)
        await assert_picture(tui, f"kv-{size[0]}x{size[1]}-{theme}")


async def test_other_marks_are_shown_at_once(daemon: ScriptedDaemon, make_tui: MakeTui) -> None:
    tui = make_tui(KVScreen)
    daemon.snapshot(models=(model("guide"),))
    answer(daemon, pool())
    async with tui.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        tui.screen.begin_fetch()  # type: ignore[attr-defined]
        await until(pilot, lambda: "▓" in text(tui))
        tui.action_change_marks()
        await until(pilot, lambda: "uuu" in text(tui))
        assert "▓" not in text(tui)


async def test_models_and_groups_are_chosen_by_keys(daemon: ScriptedDaemon, make_tui: MakeTui) -> None:
    tui = make_tui(KVScreen)
    daemon.snapshot(models=(model("a"), model("b"), model("encoder", kv_blocks_total=0)))
    answer(daemon, pool("full"), pool("window", shared=7))
    async with tui.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await pilot.press("right")
        await settled(pilot)
        assert daemon.asked[-1] == ("/llmd/kv", {"model": "b"})
        await pilot.press("right")
        await settled(pilot)
        assert daemon.asked[-1] == ("/llmd/kv", {"model": "a"})
        await pilot.press("g")
        await pilot.pause()
        assert "group 2 of 2: window" in str(tui.screen.query_one("#title", Static).render())
        assert "7 shared" in tui.screen.query_one(BlockMap).render().plain


async def test_without_a_model_it_says_so(daemon: ScriptedDaemon, make_tui: MakeTui) -> None:
    tui = make_tui(KVScreen)
    daemon.snapshot()
    async with tui.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert tui.screen.query_one(BlockMap).render().plain == "No loaded model has a KV cache."
        assert not daemon.asked


async def test_ascii_marks(daemon: ScriptedDaemon, make_tui: MakeTui) -> None:
    tui = make_tui(KVScreen)
    tui.prefer(ascii=True)
    daemon.snapshot(models=(model("guide"),))
    answer(daemon, pool())
    async with tui.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        tui.screen.begin_fetch()  # type: ignore[attr-defined]
        await settled(pilot)
        assert set(tui.screen.query_one(BlockMap).render().plain.split("\n\n")[1]) == set(".cuS\n")
