from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

import pytest

from llmd.api.errors import DaemonUnreachableError, LlmdError
from llmd_tui.daemon.access import RefusedError
from llmd_tui.text import follow_as_text, run_as_text
from tests.tui.scripted_daemon import ScriptedDaemon, model, request

LAST = "What changes is written from here on. Ctrl-C ends this; the daemon goes on."


class Lines:
    """What was written; calls ``act`` after a line that contains ``at``."""

    def __init__(self, at: str = "\0", act: Callable[[], None] = lambda: None) -> None:
        self.written: list[str] = []
        self._at, self._act = at, act

    def __call__(self, line: str) -> None:
        self.written.append(line)
        if self._at in line:
            self._act()


def test_ctrl_c_ends_it_cleanly(daemon: ScriptedDaemon) -> None:
    daemon.gets["/llmd/devices"] = {"devices": [{"name": "cpu", "ok": True, "description": "AMD"}]}
    daemon.snapshot(models=(model("guide"),))
    lines = Lines(LAST, lambda: os.kill(os.getpid(), signal.SIGINT))
    run_as_text(daemon, lines)
    assert lines.written == [
        "llmd 0.1.0 at unix:/run/llmd/llmd.sock.",
        "The device cpu can be used: AMD.",
        "The model guide is loaded.",
        LAST,
    ]


def test_a_reader_who_has_gone_ends_it_quietly(daemon: ScriptedDaemon) -> None:
    def break_pipe() -> None:
        raise BrokenPipeError

    daemon.snapshot()
    run_as_text(daemon, lines := Lines("llmd 0.1.0", break_pipe))
    assert len(lines.written) == 1


def test_a_daemon_that_refuses_is_not_asked_again(daemon: ScriptedDaemon) -> None:
    daemon.drop(RefusedError("this API key is unknown"))
    lines = Lines()
    with pytest.raises(RefusedError, match="this API key is unknown"):
        run_as_text(daemon, lines)
    assert (lines.written, daemon.connected_after) == ([], [None])


@pytest.fixture
def fast_reconnect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llmd_tui.state.follower.FIRST_WAIT_S", 0.0)


@pytest.mark.usefixtures("fast_reconnect")
async def test_changes_are_written_as_they_come(daemon: ScriptedDaemon) -> None:
    daemon.gets["/llmd/devices"] = LlmdError("no right to manage")
    written: asyncio.Queue[str] = asyncio.Queue()
    times = (float(second) for second in range(1000))
    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(follow_as_text(daemon, written.put_nowait, lambda: next(times)))
        daemon.drop(DaemonUnreachableError("nobody answers"))
        assert await written.get() == "No daemon answers: nobody answers. Connecting again."
        daemon.snapshot(models=(model("guide"),))
        opening = [await written.get() for _ in range(4)]
        assert opening[1] == "The devices are not known: no right to manage."
        daemon.send("request", **request("r1", phase="begin"))
        assert "Request r1 to guide began" in await written.get()
        daemon.drop(DaemonUnreachableError("it crashed"))
        assert await written.get() == "The daemon is lost: it crashed. Connecting again."
        daemon.snapshot(models=(model("guide"),))
        assert await written.get() == "The daemon is back."
        following.cancel()
