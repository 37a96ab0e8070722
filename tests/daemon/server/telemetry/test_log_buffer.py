from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llmd.server.telemetry.log_buffer import LogBuffer

log = logging.getLogger("llmd.made")


@pytest.fixture(autouse=True)
def errors_alone() -> Iterator[None]:
    """Set the levels as ``llmd serve`` does without ``-v``."""
    root = logging.getLogger()
    before, root.level = root.level, logging.ERROR
    root.setLevel(logging.ERROR)
    yield
    root.setLevel(before)


def kept(buffer: LogBuffer) -> list[dict[str, Any]]:
    return [json.loads(event.data) for event in buffer.feed.kept]


async def test_records_are_kept_although_nothing_prints_them() -> None:
    buffer = LogBuffer()
    log.info("before")
    with buffer.attached():
        log.debug("too_fine")
        log.info("request", extra={"model": "tiny", "ms": 1.5, "path": Path("/x"), "models": ("a", "b")})
        logging.getLogger("of_others").info("not_ours")
    log.info("after")
    (record,) = kept(buffer)
    assert (record["type"], record["level"], record["event"], record["model"]) == (
        "log",
        "info",
        "request",
        "tiny",
    )
    assert record["fields"] == {"ms": 1.5, "path": "/x", "models": ["a", "b"]}
    assert record["time"].endswith("+00:00")


async def test_warnings_are_still_printed_where_nobody_has_set_up_logging(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    with LogBuffer().attached():
        log.info("silent")
        log.warning("printed")
    assert capsys.readouterr().err == "printed\n"
    assert logging.getLogger().handlers == []


async def test_as_long_as_a_daemon_keeps_records_they_are_made() -> None:
    first, second = LogBuffer(), LogBuffer()
    with second.attached():
        with first.attached():
            pass
        log.info("later")
    assert [record["event"] for record in kept(second)] == ["later"]
    assert kept(first) == []


async def test_other_handlers_of_the_root_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    root, buffer = logging.getLogger(), LogBuffer()
    with buffer.attached():
        with monkeypatch.context() as patch:
            patch.setattr(root, "handlers", [])
            with LogBuffer().attached():
                pass
        log.info("later")
    assert [record["event"] for record in kept(buffer)] == ["later"]


async def test_a_record_without_a_model_has_none_and_an_error_has_its_traceback() -> None:
    buffer = LogBuffer()
    with buffer.attached():
        try:
            raise ValueError("deep inside")
        except ValueError:
            log.exception("failed", extra={"odd": object})
    (record,) = kept(buffer)
    assert record["model"] is None
    assert "deep inside" in record["fields"]["traceback"]
    assert "object" in record["fields"]["odd"]


async def test_records_of_other_threads_come_through_the_loop() -> None:
    buffer = LogBuffer()
    with buffer.attached(), buffer.feed.watch() as watcher:
        await asyncio.to_thread(log.warning, "from_a_thread")
        events = await watcher.next()
    assert events is not None
    assert [(json.loads(event.data)["event"], event.level) for event in events] == [
        ("from_a_thread", logging.WARNING)
    ]


def test_records_after_the_end_of_the_loop_are_dropped() -> None:
    async def make() -> LogBuffer:
        return LogBuffer()

    buffer = asyncio.run(make())
    buffer._thread = -1
    buffer.emit(logging.makeLogRecord({"msg": "late"}))
    assert buffer.feed.kept == ()
