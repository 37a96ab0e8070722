from __future__ import annotations

import asyncio
from pathlib import Path

from llmd.server.systemd.notifier import Notifier
from llmd.server.systemd.progress import Progress, report_progress
from tests.serving.service_manager import notifications


async def test_time_is_asked_for_again_and_again_while_it_is_needed(tmp_path: Path) -> None:
    seen = iter([Progress("loading tiny 10 %", True), Progress("loading tiny 90 %", True), Progress("ready")])
    done = asyncio.Event()

    def look() -> Progress:
        progress = next(seen, None)
        if progress is None:
            done.set()
        return progress or Progress("ready")

    with notifications(str(tmp_path / "notify")) as received:
        reports = asyncio.Task(report_progress(Notifier(received.address), look, every_s=0.001))
        await done.wait()
        reports.cancel()
        await asyncio.gather(reports, return_exceptions=True)
        assert received.waiting() == [
            {"STATUS": "loading tiny 10 %"},
            {"EXTEND_TIMEOUT_USEC": "30000000"},
            {"STATUS": "loading tiny 90 %"},
            {"EXTEND_TIMEOUT_USEC": "30000000"},
            {"STATUS": "ready"},
        ]
