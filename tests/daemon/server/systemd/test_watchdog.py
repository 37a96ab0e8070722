from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from llmd.server.systemd.notifier import Notifier
from llmd.server.systemd.watchdog import ping_watchdog
from tests.serving.service_manager import notifications


async def test_pings_stop_while_an_engine_hangs_and_begin_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    silences = iter([0.0, 0.005, 0.01, 99.0, 0.0])
    done = asyncio.Event()

    def silence_s() -> float:
        silent_s = next(silences, None)
        if silent_s is None:
            done.set()
        return silent_s or 0.0

    with notifications(str(tmp_path / "notify")) as received:
        pings = asyncio.Task(ping_watchdog(Notifier(received.address), 0.02, silence_s))
        await done.wait()
        pings.cancel()
        await asyncio.gather(pings, return_exceptions=True)
        assert len(received.waiting()) == 4  # of 6 looks: half of the limit is too long
    silent = [vars(record)["engine_silent_s"] for record in caplog.records]
    assert silent == [0.0, 99.0]
