from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import msgspec
import pytest

from llmd.chat.grammars.grammar_checker import WORKER
from llmd.chat.helper_process import (
    HEADER_BYTES,
    HelperLostError,
    HelperProcess,
    ReplyTooLongError,
    framed,
    processor_s,
)

MEMORY_BYTES = 1 << 30


@pytest.fixture
def helper() -> Iterator[HelperProcess]:
    helper = HelperProcess(WORKER, memory_bytes=MEMORY_BYTES, max_reply_bytes=100)
    yield helper
    helper.end()


def job(pattern: str) -> bytes:
    return framed(msgspec.msgpack.encode({"grammar": {"kind": "regex", "text": pattern}, "control_ids": []}))


def test_payloads_go_both_ways(helper: HelperProcess) -> None:
    assert helper.ready == b""
    assert msgspec.msgpack.decode(helper.ask(job("a"), limit_s=20)) == {"message": "", "hint": ""}
    assert helper.is_alive


def test_a_frame_begins_with_its_length() -> None:
    assert framed(b"abc") == b"\x03\x00\x00\x00abc"
    assert len(framed(b"")) == HEADER_BYTES


def test_a_reply_that_is_too_long_is_told_with_both_numbers(helper: HelperProcess) -> None:
    with pytest.raises(ReplyTooLongError, match=r"it has \d+ bytes, more than 100"):
        helper.ask(job("(" * 50), limit_s=20)


def test_a_process_that_ends_is_lost(helper: HelperProcess) -> None:
    os.kill(helper.pid, signal.SIGKILL)
    with pytest.raises(HelperLostError):
        helper.ask(job("a"), limit_s=20)


def test_a_process_that_gets_no_processor_is_waited_for(helper: HelperProcess) -> None:
    os.kill(helper.pid, signal.SIGSTOP)
    later = threading.Timer(0.5, os.kill, (helper.pid, signal.SIGCONT))
    later.start()
    assert msgspec.msgpack.decode(helper.ask(job("a"), limit_s=0.4)) == {"message": "", "hint": ""}
    later.join()


def test_a_process_that_never_gets_one_is_given_up(helper: HelperProcess) -> None:
    os.kill(helper.pid, signal.SIGSTOP)
    with pytest.raises(TimeoutError):
        helper.ask(job("a"), limit_s=0.02)


def test_processor_time_is_that_of_the_process() -> None:
    before = processor_s(os.getpid())
    assert before is not None
    while (used := processor_s(os.getpid())) is not None and used < before + 0.02:
        pass
    assert processor_s(1 << 30) is None


def test_a_module_that_does_not_run_is_lost() -> None:
    with pytest.raises(HelperLostError, match="without an answer"):
        HelperProcess("llmd.nothing", memory_bytes=MEMORY_BYTES, max_reply_bytes=100)
