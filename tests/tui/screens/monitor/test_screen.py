"""The monitor on a screen."""

from __future__ import annotations

from typing import Any

import pytest
from textual.widgets import Input

from llmd_tui.app import LlmdTui
from llmd_tui.screens.logs.screen import LogsScreen
from llmd_tui.screens.monitor.screen import MonitorScreen
from llmd_tui.widgets.table import Table
from llmd_tui.widgets.verdicts import Verdicts
from tests.tui.conftest import MakeTui, settled
from tests.tui.pictures import SIZES, THEMES, assert_picture
from tests.tui.pilots import lines, notices, text, until
from tests.tui.scripted_daemon import ScriptedDaemon, model, request

WAITS = {"level": "warn", "text": "3 requests wait for KV blocks: raise --kv-memory, or use --kv-dtype int8"}
MEMORY = {"level": "info", "text": "decode runs at 0.91 of what the memory of cpu allows"}


def busy(daemon: ScriptedDaemon) -> None:
    """A minute of a daemon with work."""
    live = (
        request("chatcmpl-0001", completion_tokens=120, ttft_ms=90.0, prompt_tokens=900, cached_tokens=450),
        request(
            "chatcmpl-0002", state="prefill", prompt_done=512, prompt_tokens=2048, ms=400.0, kv_blocks=32
        ),
        request("msg-0003", state="waiting", waiting_for="kv_blocks", route="/v1/messages", key="editor"),
    )
    daemon.snapshot(models=(model("guide", verdicts=(WAITS, MEMORY)),), requests=live)
    for second in range(1, 60):
        work: dict[str, Any] = {
            "output_tokens": 200 + second * (40 + second % 7 * 5),
            "steps": 100 + second * 40,
        }
        used: dict[str, Any] = {"kv_blocks_used": 40 + second * 5, "prompt_tokens": 1000 + second // 5 * 256}
        daemon.send(
            "report", models=(model("guide", verdicts=(WAITS, MEMORY), **work, **used),), processes={}
        )
        if second % 3 == 0:
            ended = request(
                f"old-{second}", phase="end", finish="stop", completion_tokens=20 + second, ttft_ms=60.0
            )
            daemon.send("request", **ended)


def monitor(make_tui: MakeTui) -> LlmdTui:
    ticks = iter(range(10_000))
    return make_tui(MonitorScreen, clock=lambda: float(next(ticks)))


def row_count(table: Table) -> int:
    return table.virtual_size.height - 1  # without the titles


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_looks_as_pictured(
    daemon: ScriptedDaemon, make_tui: MakeTui, size: tuple[int, int], theme: str
) -> None:
    tui = monitor(make_tui)
    busy(daemon)
    async with tui.run_test(size=size) as pilot:
        tui.theme = theme
        await settled(pilot)
        await assert_picture(tui, f"monitor-{size[0]}x{size[1]}-{theme}")


async def test_a_request_is_cancelled_under_the_cursor(daemon: ScriptedDaemon, make_tui: MakeTui) -> None:
    tui = monitor(make_tui)
    busy(daemon)
    daemon.posts["/llmd/cancel"] = {}
    async with tui.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await pilot.press("down", "x")
        await settled(pilot)
        assert daemon.asked == [("/llmd/cancel", {"request_id": "chatcmpl-0002"})]
        tui.screen.query_one(Table).move_to(5)  # one that has ended
        await pilot.press("x")
        assert len(daemon.asked) == 1


async def test_the_cursor_goes_to_a_live_request_only_from_the_top_of_ended_ones(
    daemon: ScriptedDaemon, make_tui: MakeTui
) -> None:
    tui = monitor(make_tui)
    daemon.snapshot(models=(model("guide"),))
    daemon.send("request", **request("old", phase="end", finish="stop"))
    async with tui.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        table = tui.screen.query_one(Table)
        assert table.selected == "old"
        await pilot.press("x")
        assert notices(tui)[-1] == "The request under the cursor has ended. None runs or waits."
        for name in ("first", "second"):
            daemon.send("request", **request(name, phase="begin"))
        await settled(pilot)
        assert table.selected == "first"
        daemon.send("request", **request("first", phase="end", finish="stop"))
        await settled(pilot)
        assert table.selected == "first"  # else x might end another request than the one that was meant
        await pilot.press("x")
        assert notices(tui)[-1].endswith("has ended. Home goes to the first that has not.")
        await pilot.press("home")
        assert table.selected == "second"


async def test_one_number_of_waiting_requests_is_shown(daemon: ScriptedDaemon, make_tui: MakeTui) -> None:
    tui = monitor(make_tui)
    daemon.snapshot(models=(model("guide"),), requests=(request("r1", state="waiting"),))
    daemon.send("report", models=(model("guide"),), processes={})
    daemon.send("request", **request("r2", state="waiting"))  # the next report has it
    async with tui.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        assert "1 waiting" in lines(tui)[0]
        assert "waiting 1" in text(tui)
        daemon.send("report", models=(model("guide"),), processes={})
        await settled(pilot)
        assert "2 waiting" in lines(tui)[0]
        assert "waiting 2" in text(tui)


async def test_filter_shows_some_and_escape_shows_all(daemon: ScriptedDaemon, make_tui: MakeTui) -> None:
    tui = monitor(make_tui)
    busy(daemon)
    async with tui.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        table = tui.screen.query_one(Table)
        everything = row_count(table)
        await pilot.press("slash", *"editor")
        assert row_count(table) == 1
        await pilot.press("enter")
        assert table.has_focus
        await pilot.press("escape")
        assert row_count(table) == everything
        assert not tui.screen.query_one("#filter", Input).display


async def test_frozen_shows_no_change(daemon: ScriptedDaemon, make_tui: MakeTui) -> None:
    tui = monitor(make_tui)
    daemon.snapshot(models=(model("guide"),))
    async with tui.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await pilot.press("f")
        daemon.send("report", models=(model("guide", verdicts=(WAITS,)),), processes={})
        await settled(pilot)
        verdicts = tui.screen.query_one(Verdicts)
        assert "Nothing waits" in str(verdicts.render())
        await pilot.press("f")
        assert "wait for KV blocks" in str(verdicts.render())


async def test_graphs_may_show_a_longer_time(daemon: ScriptedDaemon, make_tui: MakeTui) -> None:
    tui = monitor(make_tui)
    busy(daemon)
    async with tui.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        graph = tui.screen._graphs["decode_tps"]  # type: ignore[attr-defined]
        before = len(graph._values)
        await pilot.press("w")
        assert (before, len(graph._values)) == (60, 900)
        await pilot.press("w", "w")
        assert len(graph._values) == 60


async def test_the_id_is_copied(daemon: ScriptedDaemon, make_tui: MakeTui) -> None:
    tui = monitor(make_tui)
    busy(daemon)
    async with tui.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await pilot.press("y")
        await settled(pilot)
        assert (tui.folders.state / "copied.txt").read_text() == "chatcmpl-0001"


async def test_a_table_without_requests_says_why(daemon: ScriptedDaemon, make_tui: MakeTui) -> None:
    tui = monitor(make_tui)
    daemon.snapshot(models=(model("guide"),))
    async with tui.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await until(pilot, lambda: "No requests yet." in text(tui))
        await pilot.press("slash", "q")
        await until(pilot, lambda: "No request contains this text." in text(tui))


async def test_what_runs_is_at_the_top_when_the_monitor_is_opened_again(
    daemon: ScriptedDaemon, make_tui: MakeTui
) -> None:
    tui = make_tui(MonitorScreen, LogsScreen)
    daemon.snapshot(models=(model(),))
    for number in range(30):
        daemon.send("request", **request(f"old-{number}", phase="end", finish="stop"))
    async with tui.run_test(size=(100, 24)) as pilot:
        await settled(pilot)
        await pilot.press("end")
        table = tui.screen.query_one(Table)
        await until(pilot, lambda: table.scroll_offset.y)
        await pilot.press("2")
        daemon.send("request", **request("running"))
        await settled(pilot)
        await pilot.press("1")
        await settled(pilot)
        assert table.selected == "running"
        assert table.scroll_offset.y == 0
