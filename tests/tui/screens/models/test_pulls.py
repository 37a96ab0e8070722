from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from llmd.api.errors import LlmdError
from llmd_tui.screens.models.pulls import Pulls
from tests.tui.scripted_daemon import ScriptedDaemon

STEP = {"status": "pulling", "digest": "sha256:1", "file": "a", "total": 10, "completed": 5}


async def test_an_own_pull_is_shown_until_it_ends(daemon: ScriptedDaemon) -> None:
    pulls = Pulls(daemon, lambda: 0.0)
    daemon.put("/llmd/pull", STEP, None)
    async with aclosing(pulls.follow("org/x")) as steps:
        seen = [(pulls.own, [pull.completed for pull in pulls.shown]) async for _ in steps]
    assert seen == [(("org/x",), [5])]
    assert pulls.shown == ()
    assert daemon.asked == [("/llmd/pull", {"model": "org/x"})]


async def test_leaving_a_pull_ends_its_request(daemon: ScriptedDaemon) -> None:
    pulls = Pulls(daemon, lambda: 0.0)
    daemon.put("/llmd/pull", STEP)
    async with aclosing(pulls.follow("org/x")) as steps:
        await anext(steps)
    assert daemon.left == ["/llmd/pull"]
    assert pulls.own == ()


async def test_a_failed_pull_is_not_shown_any_more(daemon: ScriptedDaemon) -> None:
    pulls = Pulls(daemon, lambda: 0.0)
    daemon.put("/llmd/pull", LlmdError("no such model"))
    with pytest.raises(LlmdError, match="no such model"):
        await anext(pulls.follow("org/x"))
    await asyncio.sleep(0)
    assert pulls.shown == ()


async def test_pulls_of_others_are_shown_while_they_run(daemon: ScriptedDaemon) -> None:
    times = iter([0.0, 2.0])
    pulls = Pulls(daemon, lambda: next(times))
    pulls.see_others({"org/y": [STEP]})
    pulls.see_others({"org/y": [{**STEP, "completed": 7}]})
    (other,) = pulls.shown
    assert (other.name, other.bytes_per_s, pulls.own) == ("org/y", 1.0, ())
    pulls.see_others({})
    assert pulls.shown == ()
