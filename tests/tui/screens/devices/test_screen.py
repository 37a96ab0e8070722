"""The screen of devices: its keys, over a scripted daemon."""

from __future__ import annotations

import pytest

from llmd.api.errors import LlmdError
from llmd_tui.app import LlmdTui
from llmd_tui.preferences import Preferences
from llmd_tui.screens.devices.layer_map import LayerMap
from llmd_tui.screens.devices.screen import DevicesScreen
from llmd_tui.widgets.filter_table import FilterTable
from llmd_tui.widgets.table_rows import Sorting
from tests.tui.conftest import MakeTui, settled
from tests.tui.pilots import assert_pictures, notices, press, text
from tests.tui.screens.devices.device_answers import DEVICES, PLAN, device
from tests.tui.scripted_daemon import ScriptedDaemon, model

VERDICT = {
    "level": "warn",
    "text": "partly on the reference backend, which is slow, because you asked for it",
}


@pytest.fixture
def tui(daemon: ScriptedDaemon, make_tui: MakeTui) -> LlmdTui:
    """The interface with the devices and the plan of `device_answers`."""
    daemon.gets |= {"/llmd/devices": DEVICES, "/llmd/plan": PLAN}
    daemon.snapshot(models=(model("guide", verdicts=(VERDICT,)), model("small")))
    return make_tui(DevicesScreen)


async def test_devices_and_the_layers_on_them_are_shown(tui: LlmdTui) -> None:
    async with tui.run_test(size=(120, 34)) as pilot:
        await settled(pilot)
        shown = text(tui)
        assert "› cpu" in shown
        assert "20.9 GiB / 32.0 GiB" in shown
        assert "✗ not used: the driver" in shown
        assert "embedding C  layers CCCCCCRRRR RR  head R" in shown
        assert f"! {VERDICT['text']}" in shown
        await press(pilot, "end")
        assert "Fix  run `apt install driver`, then restart the daemon" in text(tui)


async def test_verdicts_change_with_the_events(tui: LlmdTui, daemon: ScriptedDaemon) -> None:
    async with tui.run_test(size=(120, 34)) as pilot:
        await settled(pilot)
        daemon.send("report", models=(model("guide"), model("small")), processes={})
        await settled(pilot)
        assert VERDICT["text"] not in text(tui)


async def test_a_model_that_comes_or_goes_changes_the_map(tui: LlmdTui, daemon: ScriptedDaemon) -> None:
    async with tui.run_test(size=(120, 34)) as pilot:
        await settled(pilot)
        daemon.gets["/llmd/plan"] = {"models": []}
        daemon.send("report", models=(), processes={})
        await settled(pilot)
        await settled(pilot)
        assert "No model is loaded: there is nothing to place." in text(tui)


async def test_the_command_of_a_fix_is_copied(tui: LlmdTui) -> None:
    async with tui.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await press(pilot, "y", "end", "y")
        await settled(pilot)
        assert notices(tui)[0] == "There is nothing to fix."
        assert "the fix" in notices(tui)[1]
        assert (tui.folders.state / "copied.txt").read_text() == "apt install driver"


async def test_the_map_can_be_scrolled_and_left(tui: LlmdTui) -> None:
    async with tui.run_test(size=(80, 20)) as pilot:
        await settled(pilot)
        assert "layers 0-27, head" not in text(tui)
        await press(pilot, "m", "end")
        assert tui.screen.query_one(LayerMap).has_focus
        assert "layers 0-27, head" in text(tui)
        await press(pilot, "m")
        assert tui.screen.query_one(FilterTable).table.has_focus


async def test_devices_are_filtered_sorted_and_refreshed(tui: LlmdTui, daemon: ScriptedDaemon) -> None:
    async with tui.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await press(pilot, "slash", *"driver", "enter")
        assert "1 of 3 devices" in text(tui)
        await press(pilot, "escape", "s")
        daemon.gets["/llmd/devices"] = {"devices": [device("npu")]}
        await press(pilot, "r")
        await settled(pilot)
        assert "1 device, sorted by name" in text(tui)
    assert Preferences.read(tui.folders.state).sorting == {"devices": Sorting(0)}


async def test_what_was_shown_stays_when_the_daemon_refuses(tui: LlmdTui, daemon: ScriptedDaemon) -> None:
    async with tui.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        daemon.gets["/llmd/plan"] = LlmdError("no right to manage")
        await press(pilot, "r")
        await settled(pilot)
        assert "no right to manage" in text(tui)
        assert "› cpu" in text(tui)


async def test_pictures(tui: LlmdTui) -> None:
    async with tui.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await assert_pictures(pilot, "devices")
