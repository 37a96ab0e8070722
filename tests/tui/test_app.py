"""The frame: screens, keys, the status line, a lost daemon, and what widgets ask."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from textual.app import ComposeResult
from textual.widgets import Input, Static

from llmd.api.errors import DaemonUnreachableError, LlmdError
from llmd_tui import actions
from llmd_tui.app import LlmdTui
from llmd_tui.daemon.access import RefusedError
from llmd_tui.screen import DaemonScreen
from llmd_tui.state.daemon_state import DaemonState
from llmd_tui.widgets.help_dialog import HelpDialog
from llmd_tui.widgets.status_line import StatusLine
from tests.tui.conftest import MakeTui, settled
from tests.tui.pilots import lines, press, text, until
from tests.tui.scripted_daemon import ScriptedDaemon, model, request


class First(DaemonScreen):
    NAME = "first"

    def compose_body(self) -> ComposeResult:
        yield Input(id="typed")
        yield Static(id="seen")

    def show_state(self, state: DaemonState) -> None:
        self.query_one("#seen", Static).update(", ".join(state.models))


class Second(DaemonScreen):
    NAME = "second"

    async def fetch(self) -> None:
        await self.daemon.get("/llmd/devices")


def status(tui: LlmdTui) -> str:
    return tui.screen.query_one(StatusLine).render().plain


async def test_digits_open_screens_but_not_while_typing(daemon: ScriptedDaemon, make_tui: MakeTui) -> None:
    tui = make_tui(First, Second)
    daemon.gets["/llmd/devices"] = {"devices": []}
    async with tui.run_test() as pilot:
        await pilot.press("2")
        assert isinstance(tui.screen, Second)
        await pilot.press("1")
        tui.screen.query_one(Input).focus()
        await pilot.press("2")
        assert isinstance(tui.screen, First)
        assert tui.screen.query_one(Input).value == "2"


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
@pytest.mark.parametrize("closing", ["?", "escape"])
async def test_help_lists_the_keys_until_a_key_closes_it(
    make_tui: MakeTui, size: tuple[int, int], closing: str
) -> None:
    tui = make_tui(First, Second)
    async with tui.run_test(size=size) as pilot:
        await press(pilot, "?")
        shown = " ".join(text(tui).split())
        for line in ("Keys", "On every screen", "1 Open first", "2 Open second", "?, f1 Help"):
            assert line in shown
        await press(pilot, closing)
        assert isinstance(tui.screen, First)
        assert "Open second" not in text(tui)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_notices_cover_neither_the_first_line_nor_the_lower_half(
    make_tui: MakeTui, size: tuple[int, int]
) -> None:
    tui = make_tui(First)
    async with tui.run_test(size=size, notifications=True) as pilot:
        tui.notify("A notice of [some] words.", timeout=600)
        await until(pilot, lambda: "of [some] words" in text(tui))
        rows = [row for row, line in enumerate(lines(tui)) if "▌" in line]
        assert rows[0] == 2
        assert rows[-1] < size[1] // 2


async def test_the_next_use_begins_where_the_last_ended(make_tui: MakeTui) -> None:
    tui = make_tui(First, Second)
    async with tui.run_test() as pilot:
        await pilot.press("2", "ctrl+t")
        assert not tui.has_class("-ascii")
        tui.action_change_marks()
        assert tui.has_class("-ascii")
    again = make_tui(First, Second)
    async with again.run_test():
        assert again.current_mode == "second"
        assert again.theme == "textual-light"
        assert again.has_class("-ascii")


async def test_events_reach_the_shown_screen(daemon: ScriptedDaemon, make_tui: MakeTui) -> None:
    tui = make_tui(First, Second)
    daemon.snapshot(models=(model("guide"), model("other")), requests=(request(state="waiting"),))
    async with tui.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        assert tui.screen.query_one("#seen", Static).render() == "guide, other"
        assert "● 0 tok/s  1 waiting  KV 10%" in status(tui)
        assert daemon.address in status(tui)


async def test_a_lost_daemon_is_said_and_followed_again(
    daemon: ScriptedDaemon, make_tui: MakeTui, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llmd_tui.state.follower.FIRST_WAIT_S", 0.0)
    tui = make_tui(First)
    daemon.snapshot(models=(model("guide"),))
    daemon.drop(DaemonUnreachableError("the daemon is gone", hint="start it"))
    async with tui.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        assert "✗ no connection" in status(tui)
        assert "the daemon is gone (start it)" in status(tui)
        daemon.snapshot(models=(model("back"),))
        await settled(pilot)
        assert "gone" not in status(tui)
        assert tui.screen.query_one("#seen", Static).render() == "back"
        assert daemon.connected_after == [None, None]  # another daemon counts from one again


async def test_notices_stay_with_their_screen(make_tui: MakeTui) -> None:
    tui = make_tui(First, Second)
    async with tui.run_test() as pilot:
        tui.notify("about the first screen", timeout=60)
        await pilot.press("2")
        await settled(pilot)
        assert isinstance(tui.screen, Second)
        assert not list(tui._notifications)


async def test_a_failed_fetch_is_said_until_one_succeeds(daemon: ScriptedDaemon, make_tui: MakeTui) -> None:
    tui = make_tui(First, Second)
    daemon.snapshot()
    daemon.gets["/llmd/devices"] = LlmdError("no right to manage", hint="use a key made with --manage")
    async with tui.run_test(size=(120, 40)) as pilot:
        await pilot.press("2")
        await settled(pilot)
        assert "no right to manage (use a key made with --manage)" in status(tui)
        daemon.gets["/llmd/devices"] = {}
        await pilot.press("1", "2")
        await settled(pilot)
        assert "no right" not in status(tui)


@pytest.mark.parametrize(
    ("message", "path", "body"),
    [
        (actions.CancelRequest("r7"), "/llmd/cancel", {"request_id": "r7"}),
        (actions.UnloadModel("guide"), "/llmd/stop", {"model": "guide"}),
    ],
    ids=["cancel", "unload"],
)
async def test_the_daemon_is_asked_for_what_widgets_want(
    daemon: ScriptedDaemon, make_tui: MakeTui, message: Any, path: str, body: dict[str, str]
) -> None:
    tui = make_tui(First)
    daemon.posts[path] = {}
    async with tui.run_test() as pilot:
        tui.screen.query_one(Input).post_message(message)
        await settled(pilot)
        assert (path, body) in daemon.asked
        (notice,) = tui._notifications
        assert notice.severity == "information"


async def test_failures_are_said(daemon: ScriptedDaemon, make_tui: MakeTui) -> None:
    tui = make_tui(First)
    daemon.posts["/llmd/stop"] = LlmdError("big is not loaded", hint="see `llmd ps`")
    async with tui.run_test() as pilot:
        tui.screen.post_message(actions.UnloadModel("big"))
        await settled(pilot)
        (notice,) = tui._notifications
        assert (notice.severity, notice.message) == ("error", "big is not loaded (see `llmd ps`)")


async def test_ctrl_c_quits_only_when_pressed_twice(make_tui: MakeTui) -> None:
    times = iter([0.0, 10.0, 11.0])
    tui = make_tui(First, clock=lambda: next(times))
    async with tui.run_test() as pilot:
        await pilot.press("ctrl+c")
        await pilot.press("ctrl+c")  # ten seconds later
        assert tui.is_running
        await pilot.press("ctrl+c")
        await asyncio.sleep(0)
    assert tui.return_code == 0


async def test_a_screen_goes_on_behind_a_dialog_and_ctrl_q_leaves_from_there(
    daemon: ScriptedDaemon, make_tui: MakeTui
) -> None:
    tui = make_tui(First, clock=iter(range(10_000)).__next__)
    daemon.snapshot(models=(model("guide"),))
    async with tui.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "● 0 tok/s" in text(tui))
        await pilot.press("f1")
        await until(pilot, lambda: "On every screen" in text(tui))
        daemon.send("report", models=(model("guide", output_tokens=700), model("other")), processes={})
        await until(pilot, lambda: "● 0 tok/s" not in lines(tui)[0])
        assert isinstance(tui.screen, HelpDialog)
        assert tui.shown is not None
        assert tui.shown.query_one("#seen", Static).render() == "guide, other"
        await pilot.press("ctrl+q")
        await until(pilot, lambda: not tui.is_running)
    assert tui.return_code == 0


async def test_a_screen_behind_a_dialog_is_fetched_again(
    daemon: ScriptedDaemon, make_tui: MakeTui, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Second, "FETCH_S", 0.01)
    daemon.gets["/llmd/devices"] = {"devices": []}
    tui = make_tui(Second)
    async with tui.run_test() as pilot:
        await pilot.press("?")
        await until(pilot, lambda: isinstance(tui.screen, HelpDialog))
        asked = len(daemon.asked)
        await until(pilot, lambda: len(daemon.asked) > asked)


class Chatting(First):
    NAME = "chatting"
    MANAGES = False


async def test_a_key_that_may_only_chat_is_explained_where_it_is_not_enough(
    daemon: ScriptedDaemon, make_tui: MakeTui
) -> None:
    tui = make_tui(Chatting, Second)
    daemon.drop(RefusedError("the key mine does not allow management requests", may_chat=True))
    async with tui.run_test(size=(120, 24)) as pilot:
        await until(pilot, lambda: "○ may not manage" in text(tui))
        assert "the key mine" not in text(tui)
        await pilot.press("2")
        await until(pilot, lambda: "This needs a key that may manage the daemon: the key mine" in text(tui))
        assert "Set LLMD_API_KEY to such a key" in text(tui)
        assert not tui.screen.query_one("#body").display
        assert daemon.asked == []
    assert daemon.connected_after == [None]


async def test_a_wrong_key_is_named_on_every_screen(daemon: ScriptedDaemon, make_tui: MakeTui) -> None:
    tui = make_tui(Chatting, Second)
    daemon.drop(RefusedError("this API key is unknown"))
    async with tui.run_test(size=(120, 24)) as pilot:
        await until(pilot, lambda: "this API key is unknown" in status(tui))
        await pilot.press("2")
        await until(pilot, lambda: "Set LLMD_API_KEY to a key of this daemon" in text(tui))
    assert daemon.connected_after == [None]


async def test_a_daemon_that_is_back_is_asked_again(
    daemon: ScriptedDaemon, make_tui: MakeTui, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llmd_tui.state.follower.FIRST_WAIT_S", 0.0)
    monkeypatch.setattr("llmd_tui.app.REFRESH_S", 0.01)
    tui = make_tui(Second)
    daemon.gets["/llmd/devices"] = {"devices": []}
    daemon.snapshot()
    async with tui.run_test() as pilot:
        await until(pilot, lambda: tui.follower.status == "connected" and len(daemon.asked) == 1)
        daemon.drop(DaemonUnreachableError("it was killed"))
        await until(pilot, lambda: "it was killed" in status(tui))
        daemon.snapshot()
        await until(pilot, lambda: len(daemon.asked) == 2)


async def test_copied_text_is_also_in_a_private_file(make_tui: MakeTui, tmp_path: Path) -> None:
    tui = make_tui(First)
    async with tui.run_test() as pilot:
        tui.screen.post_message(actions.CopyText("words", "the words"))
        await settled(pilot)
        path = tmp_path / "state" / "copied.txt"
        assert path.read_text() == "words"
        assert path.stat().st_mode & 0o777 == 0o600


async def test_screens_that_do_not_load_are_named(make_tui: MakeTui) -> None:
    tui = make_tui(First, failures=("the screen 'x' cannot be loaded: no module",))
    async with tui.run_test() as pilot:
        await settled(pilot)
        assert [notice.message for notice in tui._notifications] == [
            "the screen 'x' cannot be loaded: no module"
        ]
