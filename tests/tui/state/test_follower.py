from __future__ import annotations

import asyncio

import pytest

from llmd.api.errors import DaemonUnreachableError
from llmd_tui.state.follower import Follower
from tests.tui.scripted_daemon import ScriptedDaemon, model


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llmd_tui.state.follower.FIRST_WAIT_S", 0.0)


async def until_changed(follower: Follower) -> None:
    await asyncio.wait_for(follower.changed.wait(), 5)
    follower.changed.clear()


async def test_follows_and_connects_again(daemon: ScriptedDaemon) -> None:
    follower = Follower(daemon, lambda: 0.0)
    assert follower.status == "connecting"
    task = asyncio.create_task(follower.follow())  # noqa: TID251 - awaited below
    daemon.snapshot(models=(model("a"),))
    await until_changed(follower)
    assert (follower.status, list(follower.state.models)) == ("connected", ["a"])
    daemon.drop(DaemonUnreachableError("gone", hint="start it"))
    await until_changed(follower)
    assert (follower.status, follower.reason) == ("lost", "gone (start it)")
    assert list(follower.state.models) == ["a"]  # what was known stays on the screen
    daemon.snapshot(models=(model("b"),))
    await until_changed(follower)
    assert (follower.status, follower.reason) == ("connected", "")
    daemon.drop()
    await until_changed(follower)
    assert "ended the stream" in follower.reason
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
