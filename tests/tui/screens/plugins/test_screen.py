"""The screen of plugins: its keys, over a scripted daemon."""

from __future__ import annotations

import pytest

from llmd.api.errors import LlmdError
from llmd_tui.app import LlmdTui
from llmd_tui.preferences import Preferences
from llmd_tui.screens.plugins.screen import PluginsScreen
from llmd_tui.widgets.table_rows import Sorting
from tests.tui.conftest import MakeTui, settled
from tests.tui.pilots import assert_pictures, lines, notices, press, text
from tests.tui.screens.plugins.test_plugin_rows import plugin
from tests.tui.scripted_daemon import ScriptedDaemon

PLUGINS = {
    "plugins": [
        plugin(name="cpu", distribution="llmd-backend-cpu", provides={"backend": ["cpu"]}),
        plugin(
            state="failed",
            reason="the driver is older than 550",
            fix="run `apt install driver`, then restart the daemon",
        ),
        plugin(
            name="tui", distribution="llmd-tui", phase="name", state="unknown", provides={"command": ["tui"]}
        ),
    ]
}


@pytest.fixture
def tui(daemon: ScriptedDaemon, make_tui: MakeTui) -> LlmdTui:
    """The interface with three plugins, of which one failed."""
    daemon.gets["/llmd/plugins"] = PLUGINS
    daemon.posts["/llmd/reload"] = {}
    daemon.snapshot()
    return make_tui(PluginsScreen)


async def test_plugins_are_listed_with_reason_and_fix(tui: LlmdTui) -> None:
    async with tui.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        assert "› cpu" in text(tui)
        assert "✗ failed: the driver is older" in text(tui)
        await press(pilot, "down")
        assert "Fix  run `apt install driver`, then restart the daemon" in text(tui)


async def test_the_command_of_a_fix_is_copied(tui: LlmdTui) -> None:
    async with tui.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await press(pilot, "y", "down", "y")
        await settled(pilot)
        assert notices(tui)[0] == "There is nothing to fix."
        assert (tui.folders.state / "copied.txt").read_text() == "apt install driver"


async def test_commands_of_a_plugin_are_shown_and_copied(tui: LlmdTui, daemon: ScriptedDaemon) -> None:
    async with tui.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await press(pilot, "down", "enter")
        assert "llmd plugins disable cuda" in text(tui)
        await press(pilot, "down", "down", "y")
        await settled(pilot)
        copied = tui.folders.state / "copied.txt"
        assert copied.read_text() == "llmd plugins uninstall llmd-backend-cuda"
        await press(pilot, "n", "y")
        await settled(pilot)
        assert copied.read_text() == "llmd plugins install NAME"
    assert {path for path, _ in daemon.asked} == {"/llmd/plugins"}  # nothing was changed


async def test_plugins_describe_themselves_again(tui: LlmdTui, daemon: ScriptedDaemon) -> None:
    async with tui.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        daemon.gets["/llmd/plugins"] = {"plugins": [plugin(name="new")]}
        await press(pilot, "r")
        await settled(pilot)
        assert ("/llmd/reload", {}) in daemon.asked
        assert "› new" in text(tui)
        daemon.posts["/llmd/reload"] = LlmdError("the key file is broken")
        await press(pilot, "r")
        await settled(pilot)
        assert notices(tui)[-1] == "the key file is broken"


async def test_plugins_are_filtered_and_sorted(tui: LlmdTui) -> None:
    async with tui.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await press(pilot, "slash", *"backend", "enter")
        assert "2 of 3 plugins" in text(tui)
        await press(pilot, "escape", "s", "s")
        assert [line.split()[0] for line in lines(tui)[2:5]] == ["cuda", "tui", "›"]
    assert Preferences.read(tui.folders.state).sorting == {"plugins": Sorting(1)}


async def test_pictures(tui: LlmdTui) -> None:
    async with tui.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await press(pilot, "down")
        await assert_pictures(pilot, "plugins")
