from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from llmd.api.messages import Load, Loaded, Shutdown
from llmd.api.reports import GetReport, Report
from llmd.api.results import Failed
from llmd.server.engines.engine_child import engine_command, start_child
from llmd.server.engines.engine_process import EngineProcess
from llmd.server.engines.hang_detector import HangLimits

GRACE_S = 20.0


async def test_messages_go_both_ways_until_the_engine_is_told_to_end(
    model_directory: Path, probes: Path
) -> None:
    process = await EngineProcess.adopt(await start_child(engine_command(probes)))
    process.send(Load(str(model_directory), device="reference", kv_memory=64 << 20))
    kinds = []
    async for message in process.messages():
        kinds.append(type(message))
        if isinstance(message, Loaded):
            process.send(GetReport())
        if isinstance(message, Report):
            process.send(Shutdown())
    assert kinds[-2:] == [Loaded, Report]
    assert await process.end(GRACE_S) == "exit status 0"


async def test_failure_to_load_is_a_message(tmp_path: Path, probes: Path) -> None:
    process = await EngineProcess.adopt(await start_child(engine_command(probes)))
    process.send(Load(str(tmp_path)))
    (failed,) = [message async for message in process.messages()]
    assert isinstance(failed, Failed)
    assert failed.error == "CheckpointError"
    assert await process.end(GRACE_S) == "exit status 1"


async def test_killed_engine_ends_its_messages_and_tells_the_signal(probes: Path) -> None:
    process = await EngineProcess.adopt(await start_child(engine_command(probes)))
    os.kill(process.pid, signal.SIGKILL)
    assert [message async for message in process.messages()] == []
    assert await process.end(GRACE_S) == "signal 9, SIGKILL"
    process.send(GetReport())


async def test_engine_that_does_not_end_is_killed() -> None:
    process = await EngineProcess.adopt(
        await start_child([sys.executable, "-c", "import time; time.sleep(99)"])
    )
    assert await process.end(0.0) == "signal 9, SIGKILL"


async def test_engine_survives_an_interrupt_of_the_daemons_terminal() -> None:
    process = await EngineProcess.adopt(
        await start_child([sys.executable, "-c", "import time; time.sleep(99)"])
    )
    assert os.getsid(process.pid) != os.getsid(0)
    await process.end(0.0)


async def test_frames_that_cannot_be_read_end_the_messages(caplog: pytest.LogCaptureFixture) -> None:
    code = "import socket, sys; socket.socket(fileno=int(sys.argv[2])).sendall(b'\\1\\0\\0\\0\\xc1')"
    process = await EngineProcess.adopt(await start_child([sys.executable, "-c", code]))
    assert [message async for message in process.messages()] == []
    await process.end(GRACE_S)
    assert "engine_frame_unreadable" in caplog.text


async def test_last_words_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    process = await EngineProcess.adopt(
        await start_child([sys.executable, "-c", "import sys; sys.exit('no driver')"])
    )
    await process.end(GRACE_S)
    assert [vars(record)["line"] for record in caplog.records if "engine_said" in record.message] == [
        "no driver"
    ]


async def test_events_of_the_engine_are_events_of_the_daemon(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    code = """
import logging
from llmd.engine.log_lines import log_to_stderr
log_to_stderr()
logging.getLogger("made").warning("kv_spool_dropped", extra={"reason": "it is damaged", "blocks": 3})
"""
    process = await EngineProcess.adopt(await start_child([sys.executable, "-c", code]))
    process.model = "tiny"
    await process.end(GRACE_S)
    (record,) = (record for record in caplog.records if record.message == "kv_spool_dropped")
    fields = vars(record)
    assert (record.levelname, fields["model"]) == ("WARNING", "tiny")
    assert (fields["reason"], fields["blocks"]) == ("it is damaged", 3)
    assert process.last_lines == ("kv_spool_dropped reason=it is damaged blocks=3",)


async def test_line_of_any_length_neither_blocks_the_engine_nor_hides_the_next() -> None:
    code = "import sys; sys.stderr.write('x' * 500_000 + chr(10)); sys.exit('no driver')"
    process = await EngineProcess.adopt(await start_child([sys.executable, "-c", code]))
    assert await process.end(GRACE_S) == "exit status 1"
    assert process.last_lines[-1] == "no driver"


async def test_an_engine_that_hangs_is_killed(model_directory: Path, probes: Path) -> None:
    kill_s = 0.5
    limits = HangLimits(probe_s=0.1, kill_s=kill_s)
    process = await EngineProcess.adopt(await start_child(engine_command(probes)), limits)
    process.send(Load(str(model_directory), device="reference", kv_memory=64 << 20))
    async for message in process.messages():
        if isinstance(message, Loaded):
            os.kill(process.pid, signal.SIGSTOP)
    assert process.silent_s >= kill_s
    assert (await process.end(GRACE_S)).startswith("it made no progress for ")


async def test_an_idle_engine_is_asked_for_signs_of_life(model_directory: Path, probes: Path) -> None:
    process = await EngineProcess.adopt(await start_child(engine_command(probes)), HangLimits(probe_s=0.01))
    process.send(Load(str(model_directory), device="reference", kv_memory=64 << 20))
    reports = 0
    async for message in process.messages():
        reports += isinstance(message, Report)
        if reports == 3:
            process.send(Shutdown())
    assert await process.end(GRACE_S) == "exit status 0"
