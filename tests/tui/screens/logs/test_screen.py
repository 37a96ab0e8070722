"""The log on a screen."""

from __future__ import annotations

import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import RichLog

from llmd.api.errors import DaemonUnreachableError
from llmd.config import UnixAddress
from llmd_tui.app import Folders, LlmdTui
from llmd_tui.daemon.http_daemon import HttpDaemon
from llmd_tui.screens.kv.screen import KVScreen
from llmd_tui.screens.logs.screen import LogsScreen
from tests.serving.home import Home
from tests.tui.conftest import ListeningTui, MakeTui, settled
from tests.tui.pictures import THEMES, assert_picture
from tests.tui.pilots import text, until
from tests.tui.scripted_daemon import ScriptedDaemon

LINES = (
    ("info", "serving", None, {"addresses": "http://127.0.0.1:8642"}),
    ("info", "request", "guide", {"request_id": "chatcmpl-1", "status": 200, "ms": 820.5}),
    ("warning", "engine_restarted", "guide", {"reason": "killed by signal 9"}),
    ("debug", "step", "guide", {"rows": 4}),
    ("error", "pull_failed", None, {"name": "org/model", "reason": "no space left on the disk"}),
)


def send(daemon: ScriptedDaemon, first: int = 0) -> None:
    for second, (level, event, name, fields) in enumerate(LINES, first):
        time = f"2026-11-25T20:00:{second:02d}.000+00:00"
        piece: dict[str, Any] = {
            "type": "log",
            "number": second + 1,
            "time": time,
            "level": level,
            "event": event,
            "model": name,
            "fields": fields,
        }
        daemon.put("/llmd/logs", piece)


def lines(tui: LlmdTui) -> list[str]:
    return [strip.text.strip() for strip in tui.screen.query_one(RichLog).lines]


@pytest.mark.parametrize("theme", THEMES)
async def test_looks_as_pictured(daemon: ScriptedDaemon, make_tui: MakeTui, theme: str) -> None:
    tui = make_tui(LogsScreen)
    daemon.snapshot()
    send(daemon)
    async with tui.run_test(size=(80, 24)) as pilot:
        tui.theme = theme
        await settled(pilot)
        await assert_picture(tui, f"logs-80x24-{theme}")


async def test_level_and_text_choose_the_lines(daemon: ScriptedDaemon, make_tui: MakeTui) -> None:
    tui = make_tui(LogsScreen)
    send(daemon)
    async with tui.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        assert len(lines(tui)) == 4
        await pilot.press("l")
        assert len(lines(tui)) == 5
        await pilot.press("slash", *"killed")
        await pilot.pause()
        assert len(lines(tui)) == 1
        await pilot.press("enter", "escape")
        await pilot.pause()
        assert len(lines(tui)) == 5


async def test_the_stream_ends_with_the_screen_and_goes_on_without_repeating(
    daemon: ScriptedDaemon, make_tui: MakeTui
) -> None:
    tui = make_tui(LogsScreen, KVScreen)
    send(daemon)
    async with tui.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await pilot.press("2")
        await settled(pilot)
        assert daemon.left == ["/llmd/logs"]
        send(daemon)  # the daemon tells what it kept, again
        send(daemon, first=len(LINES))
        await pilot.press("1")
        await settled(pilot)
        assert len(lines(tui)) == 8


async def test_the_log_goes_on_behind_a_dialog(daemon: ScriptedDaemon, make_tui: MakeTui) -> None:
    tui = make_tui(LogsScreen)
    send(daemon)
    async with tui.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        screen = tui.screen
        await pilot.press("?")
        await until(pilot, lambda: tui.screen is not screen)
        send(daemon, first=len(LINES))
        await until(pilot, lambda: len(screen.query_one(RichLog).lines) == 8)
        assert daemon.left == []


async def test_shown_lines_are_copied(daemon: ScriptedDaemon, make_tui: MakeTui) -> None:
    tui = make_tui(LogsScreen)
    send(daemon)
    async with tui.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await pilot.press("y")
        await settled(pilot)
        copied = (tui.folders.state / "copied.txt").read_text()
        assert "engine_restarted" in copied
        assert "step" not in copied


def is_wrapped(tui: LlmdTui, wanted: bool) -> bool:  # noqa: FBT001 - partial() gives it by position
    return (len(lines(tui)) > 4) is wanted


async def test_lines_are_wrapped_again_in_a_terminal_of_another_width(
    daemon: ScriptedDaemon, make_tui: MakeTui
) -> None:
    tui = make_tui(LogsScreen)
    send(daemon)
    async with tui.run_test(size=(200, 40)) as pilot:
        await settled(pilot)
        wide = lines(tui)
        assert len(wide) == 4
        for width in (40, 200):
            await pilot.resize_terminal(width, 40)
            await until(pilot, partial(is_wrapped, tui, width == 40))
            assert all(len(line) <= width for line in lines(tui))
        assert lines(tui) == wide


async def test_a_log_without_lines_says_why_until_one_comes(
    daemon: ScriptedDaemon, make_tui: MakeTui
) -> None:
    tui = make_tui(LogsScreen)
    async with tui.run_test(size=(120, 24)) as pilot:
        await until(pilot, lambda: lines(tui) == ["No line of level info and above; l shows other levels."])
        send(daemon)
        await until(pilot, lambda: len(lines(tui)) == 4)
        await pilot.press("slash", *"xyz")
        await until(pilot, lambda: lines(tui)[0].startswith("No line of level info and above contains 'xyz'"))


GAP = "--- Records may be missing: the daemon was restarted, or dropped some. ---"


@pytest.fixture
def fast_reconnect(monkeypatch: pytest.MonkeyPatch) -> None:
    for user in ("state.follower", "screens.logs.screen"):
        monkeypatch.setattr(f"llmd_tui.{user}.FIRST_WAIT_S", 0.01)
        monkeypatch.setattr(f"llmd_tui.{user}.LONGEST_WAIT_S", 0.1)


@pytest.mark.usefixtures("fast_reconnect")
async def test_a_stream_that_breaks_or_ends_is_opened_again(
    daemon: ScriptedDaemon, make_tui: MakeTui
) -> None:
    tui = make_tui(LogsScreen)
    daemon.snapshot()
    send(daemon)
    async with tui.run_test(size=(120, 24)) as pilot:
        await until(pilot, lambda: len(lines(tui)) == 4)
        daemon.put("/llmd/logs", DaemonUnreachableError("the connection was cut"))
        await until(pilot, lambda: "the connection was cut" in text(tui))
        daemon.put("/llmd/logs", {"type": "lost", "number": 9})  # the screen was too slow for some
        send(daemon, first=20)
        await until(pilot, lambda: len(lines(tui)) == 9)
        assert lines(tui)[4] == GAP
        await until(pilot, lambda: "the connection was cut" not in text(tui))
        daemon.put("/llmd/logs", None)
        send(daemon, first=20 + len(LINES))
        await until(pilot, lambda: len(lines(tui)) == 13)


@pytest.mark.usefixtures("fast_reconnect")
@pytest.mark.parametrize(
    "how",
    [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.exhaustive)],
    ids=lambda how: how.name,
)
async def test_the_log_goes_on_after_a_restart_of_the_daemon(
    home: Home, tmp_path: Path, how: signal.Signals
) -> None:
    daemon = HttpDaemon([UnixAddress(home.socket)])
    tui = ListeningTui(daemon, {"logs": LogsScreen}, folders=Folders(tmp_path / "data", tmp_path / "state"))
    async with tui.run_test(size=(160, 40)) as pilot:
        with home.serve() as served:
            await until(pilot, partial(has_starts, tui, 1))
            served.process.send_signal(how)
            await until(pilot, lambda: served.process.poll() is not None)
            await until(pilot, lambda: tui.follower.status == "lost")
        with home.serve():
            await until(pilot, partial(has_starts, tui, 2))
            await until(pilot, lambda: tui.follower.status == "connected" and "was lost" not in text(tui))
            assert lines(tui).count(GAP) == 1


def has_starts(tui: LlmdTui, count: int) -> bool:
    return sum(" serving " in line for line in lines(tui)) == count
