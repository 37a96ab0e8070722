"""An engine that is started ahead is the next one that is asked for; one that nobody takes ends."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from llmd.api.messages import Failed, Load
from llmd.server.engines.engine_process import engine_command
from llmd.server.engines.engine_starter import EngineStarter

GRACE_S = 20.0
SLEEPER = [sys.executable, "-c", "import time; time.sleep(99)"]


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_the_engine_that_was_started_ahead_is_taken_once() -> None:
    async with EngineStarter(SLEEPER) as engines:
        await engines.start_ahead()
        assert engines._ahead is not None
        pid = engines._ahead.pid
        first, second = await engines.start("a"), await engines.start("b")
        assert first.pid == pid
        assert second.pid != pid
        assert [first.model, second.model] == ["a", "b"]
        await first.end(0.0)
        await second.end(0.0)


async def test_an_engine_that_was_started_ahead_loads_what_it_is_told(probes: Path, tmp_path: Path) -> None:
    async with EngineStarter(engine_command(probes)) as engines:
        await engines.start_ahead()
        engine = await engines.start("empty")
        engine.send(Load(str(tmp_path)))
        (failed,) = [message async for message in engine.messages()]
        assert isinstance(failed, Failed)
        await engine.end(GRACE_S)


async def test_an_engine_that_nobody_took_ends_with_the_starter() -> None:
    async with EngineStarter(SLEEPER) as engines:
        await engines.start_ahead()
        assert engines._ahead is not None
        pid = engines._ahead.pid
        assert is_running(pid)
    assert not is_running(pid)


async def test_an_engine_that_died_before_it_was_taken_is_replaced() -> None:
    async with EngineStarter(SLEEPER) as engines:
        await engines.start_ahead()
        assert engines._ahead is not None
        pid = engines._ahead.pid
        os.kill(pid, signal.SIGKILL)
        await engines._ahead._process.wait()
        engine = await engines.start("a")
        assert engine.pid != pid
        assert not engine.has_ended
        await engine.end(0.0)


async def test_a_command_that_cannot_be_started_says_so() -> None:
    async with EngineStarter(["/nonexistent/engine"]) as engines:
        with pytest.raises(FileNotFoundError):
            await engines.start_ahead()
