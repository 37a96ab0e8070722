from __future__ import annotations

import pytest

from llmd_tui.screen import ORDER, DaemonScreen
from llmd_tui.widgets.status_line import StatusLine
from tests.tui.conftest import MakeTui, settled
from tests.tui.pilots import lines
from tests.tui.scripted_daemon import ScriptedDaemon, model, request


class One(DaemonScreen):
    NAME = "one"


class KV(DaemonScreen):
    NAME = "kv"


async def test_a_click_opens_the_screen_under_it(daemon: ScriptedDaemon, make_tui: MakeTui) -> None:
    tui = make_tui(One, KV)
    async with tui.run_test(size=(80, 24)) as pilot:
        line = tui.screen.query_one(StatusLine)
        shown = line.render().plain
        assert shown.startswith(" 1 One 2 KV ")
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


@pytest.mark.parametrize(
    ("width", "first_line"),
    [
        (80, "  1 Chat 2 Models 3 Devices 4 Monitor 5 KV 6 Plugins 7 Logs  ● 0 tok/s 1 waiting"),
        (
            100,
            "  1 Chat  2 Models  3 Devices  4 Monitor  5 KV  6 Plugins  7 Logs       ● 0 tok/s  1 waiting  KV 10%",
        ),
    ],
)
async def test_seven_screens_leave_room_for_what_matters_most(
    daemon: ScriptedDaemon, make_tui: MakeTui, width: int, first_line: str
) -> None:
    daemon.snapshot(models=(model("guide"),), requests=(request(state="waiting"),))
    screens = [type(name.capitalize(), (DaemonScreen,), {"NAME": name}) for name in ORDER]
    tui = make_tui(*screens)
    async with tui.run_test(size=(width, 24)) as pilot:
        await settled(pilot)
        assert lines(tui)[:2] == [first_line, ""]
