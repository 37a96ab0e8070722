"""The spare engine is used first, is replaced later, and is killed if it stays unused."""

from __future__ import annotations

import logging
import os
import signal
import sys
from pathlib import Path

import pytest

from llmd.api.messages import Load
from llmd.api.results import Failed
from llmd.server.engines import engine_starter
from llmd.server.engines.engine_child import engine_command
from llmd.server.engines.engine_starter import EngineStarter

GRACE_S = 20.0
SLEEPER = [sys.executable, "-c", "import time; time.sleep(99)"]


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def spare_pid(engines: EngineStarter) -> int:
    assert engines._spare is not None
    return engines._spare.process.pid


async def test_the_spare_engine_is_taken_once() -> None:
    async with EngineStarter(SLEEPER, keeps_spare=True) as engines:
        pid = spare_pid(engines)
        first, second = await engines.start("a"), await engines.start("b")
        assert first.pid == pid
        assert second.pid != pid
        assert [first.model, second.model] == ["a", "b"]
        await first.end(0.0)
        await second.end(0.0)


async def test_another_spare_engine_follows_the_one_that_was_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_starter, "RESTOCK_S", 0.0)
    async with EngineStarter(SLEEPER, keeps_spare=True) as engines:
        first = await engines.start("a")
        assert engines._restocking is not None
        assert await engines._restocking.join(GRACE_S)
        pid = spare_pid(engines)
        second = await engines.start("b")
        assert second.pid == pid != first.pid
        await first.end(0.0)
        await second.end(0.0)


async def test_no_spare_engine_is_kept_unless_one_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_starter, "RESTOCK_S", 0.0)
    async with EngineStarter(SLEEPER) as engines:
        assert engines._spare is None
        engine = await engines.start("a")
        assert engines._restocking is None
        await engine.end(0.0)


async def test_a_spare_engine_loads_what_it_is_told(probes: Path, tmp_path: Path) -> None:
    async with EngineStarter(engine_command(probes), keeps_spare=True) as engines:
        engine = await engines.start("empty")
        engine.send(Load(str(tmp_path)))
        (failed,) = [message async for message in engine.messages()]
        assert isinstance(failed, Failed)
        await engine.end(GRACE_S)


async def test_an_engine_that_nobody_took_ends_with_the_starter() -> None:
    async with EngineStarter(SLEEPER, keeps_spare=True) as engines:
        pid = spare_pid(engines)
        assert is_running(pid)
    assert not is_running(pid)


async def test_an_engine_that_died_before_it_was_taken_is_replaced() -> None:
    async with EngineStarter(SLEEPER, keeps_spare=True) as engines:
        pid = spare_pid(engines)
        os.kill(pid, signal.SIGKILL)
        assert engines._spare is not None
        await engines._spare.process.wait()
        engine = await engines.start("a")
        assert engine.pid != pid
        assert is_running(engine.pid)
        await engine.end(0.0)


async def test_a_command_that_cannot_be_started_is_told_to_whoever_asks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        async with EngineStarter(["/nonexistent/engine"], keeps_spare=True) as engines:
            assert [record.message for record in caplog.records] == ["no_spare_engine"]
            with pytest.raises(FileNotFoundError):
                await engines.start("a")
