from __future__ import annotations

import asyncio
import os

import pytest

from llmd.server.input_end import end_with_input


async def test_the_end_of_the_input_ends_the_daemon_without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    ended = asyncio.Event()
    calls = []

    def shut_down() -> None:
        calls.append(1)
        ended.set()

    with os.fdopen(reading) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        with end_with_input(shut_down):
            os.write(writing, b"what is written is nobody's")
            await asyncio.sleep(0)
            assert not calls
            os.close(writing)
            await ended.wait()
    assert len(calls) == 2


async def test_input_that_cannot_end_ends_the_daemon_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    with os.fdopen(os.open(os.devnull, os.O_RDONLY)) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        with end_with_input(lambda: calls.append(1)):
            assert calls == [1]
