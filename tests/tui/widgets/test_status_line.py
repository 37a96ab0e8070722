from __future__ import annotations

from llmd_tui.screen import DaemonScreen
from llmd_tui.widgets.status_line import StatusLine
from tests.tui.conftest import MakeTui, settled
from tests.tui.scripted_daemon import ScriptedDaemon


class One(DaemonScreen):
    NAME = "one"


class KV(DaemonScreen):
    NAME = "kv"


async def test_a_click_opens_the_screen_under_it(daemon: ScriptedDaemon, make_tui: MakeTui) -> None:
    tui = make_tui(One, KV)
    async with tui.run_test(size=(80, 24)) as pilot:
        line = tui.screen.query_one(StatusLine)
        shown = line.render().plain
        assert shown.startswith(" 1 One  2 KV ")
        await pilot.click(StatusLine, offset=(shown.index("KV") + line.styles.padding.left, 0))
        assert tui.current_mode == "kv"


async def test_a_line_without_room_leaves_the_address_out(daemon: ScriptedDaemon, make_tui: MakeTui) -> None:
    daemon.address = f"unix:/{'run/' * 20}llmd.sock"
    tui = make_tui(One)
    async with tui.run_test(size=(80, 24)) as pilot:
        line = tui.screen.query_one(StatusLine)
        for width, is_shown in ((80, False), (105, False), (120, True)):
            await pilot.resize_terminal(width, 24)
            await settled(pilot)
            shown = line.render().plain
            assert (daemon.address in shown) is is_shown
            assert len(shown) == line.size.width
