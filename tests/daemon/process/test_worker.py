from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from llmd.chat.grammars.grammar_checker import WORKER
from llmd.process.worker import (
    ReplyTooLongError,
    Worker,
    WorkerLostError,
)

MEMORY_BYTES = 1 << 30


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker(WORKER, memory_bytes=MEMORY_BYTES, max_reply_bytes=100)
    yield worker
    worker.end()


def job(pattern: str) -> bytes:
    return msgspec.msgpack.encode({"grammar": {"kind": "regex", "text": pattern}, "control_ids": []})


def test_payloads_go_both_ways(worker: Worker) -> None:
    assert msgspec.msgpack.decode(worker.ask(job("a"), limit_s=20)) == {"message": "", "hint": ""}
    assert worker.is_alive


def test_a_reply_that_is_too_long_is_told_with_both_numbers(worker: Worker) -> None:
    with pytest.raises(ReplyTooLongError, match=r"it has \d+ bytes, more than 100"):
        worker.ask(job("(" * 50), limit_s=20)


def test_a_process_that_ends_is_lost(worker: Worker) -> None:
    os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(WorkerLostError):
        worker.ask(job("a"), limit_s=20)


def test_a_process_that_gets_no_processor_is_waited_for(worker: Worker) -> None:
    os.kill(worker.pid, signal.SIGSTOP)
    later = threading.Timer(0.5, os.kill, (worker.pid, signal.SIGCONT))
    later.start()
    assert msgspec.msgpack.decode(worker.ask(job("a"), limit_s=0.4)) == {"message": "", "hint": ""}
    later.join()


def test_a_process_that_never_gets_one_is_given_up(worker: Worker) -> None:
    os.kill(worker.pid, signal.SIGSTOP)
    with pytest.raises(TimeoutError):
        worker.ask(job("a"), limit_s=0.02)


def test_a_module_that_does_not_run_is_lost() -> None:
    with pytest.raises(WorkerLostError, match="without an answer"):
        Worker("llmd.nothing", memory_bytes=MEMORY_BYTES, max_reply_bytes=100)


def test_a_process_that_does_not_say_that_it_is_ready_is_lost(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nprintf '\\001\\000\\000\\000x'\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(WorkerLostError, match="first message was not the one"):
        Worker(WORKER, memory_bytes=MEMORY_BYTES, max_reply_bytes=100)
