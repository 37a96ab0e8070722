"""A real daemon is recorded, and its recording answers as it did."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmd.config import UnixAddress
from llmd_tui.daemon.http_daemon import HttpDaemon
from llmd_tui.demo.recorded_daemon import RecordedDaemon
from llmd_tui.demo.recorder import record
from llmd_tui.demo.recording import Recording
from tests.serving.model import write_model
from tests.serving.running import MODEL, directories_below, running_daemon


async def test_a_recording_answers_as_the_daemon_did(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    directories = directories_below(tmp_path)
    write_model(directories.models / MODEL)
    with running_daemon(directories) as running:
        daemon = HttpDaemon([UnixAddress(running.socket)])
        entries = await record(daemon, 0.0, MODEL)
        devices = await daemon.get("/llmd/devices")
        await daemon.close()
    recorded = RecordedDaemon(Recording.of(entries))
    assert [one["name"] for one in (await recorded.get("/llmd/devices"))["devices"]] == [
        one["name"] for one in devices["devices"]
    ]
    pieces = [one.answer for one in Recording.of(entries).pieces if one.stream == "/v1/chat/completions"]
    assert pieces[0]["choices"][0]["delta"]["role"] == "assistant"
