from __future__ import annotations

from llmd_tui.screen import DaemonScreen
from llmd_tui.widgets.status_line import StatusLine
from tests.tui.conftest import MakeTui
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


async def test_a_narrow_line_leaves_the_address_out(daemon: ScriptedDaemon, make_tui: MakeTui) -> None:
    tui = make_tui(One)
    async with tui.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        tui.show_now()
        assert daemon.address not in tui.screen.query_one(StatusLine).render().plain
