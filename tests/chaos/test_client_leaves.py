"""If a client disconnects, its requests end at once, in whatever state they are, and no others do."""

from __future__ import annotations

import json
import socket
from contextlib import ExitStack

import pytest

from tests.chaos.conftest import SLOTS
from tests.serving.engine_state import asked, report, wait_until
from tests.serving.http import chat, open_stream
from tests.serving.model import CONTEXT_LEN
from tests.serving.running import RunningDaemon

LONG = {"max_tokens": CONTEXT_LEN, "ignore_eos": True}


@pytest.mark.parametrize("unix", [False, True])
@pytest.mark.parametrize("stream", [False, True])
def test_running_request_is_freed(slow_daemon: RunningDaemon, *, stream: bool, unix: bool) -> None:
    with asked(slow_daemon, {**LONG, "stream": stream}, unix=unix):
        wait_until(slow_daemon, running=1)
    wait_until(slow_daemon, running=0, kv_blocks_used=0)
    assert report(slow_daemon)["output_tokens"] < CONTEXT_LEN - 40


def test_stream_that_was_half_read_is_freed(slow_daemon: RunningDaemon) -> None:
    with open_stream(slow_daemon, LONG) as reply:
        for _ in range(10):
            reply.readline()
    wait_until(slow_daemon, running=0, kv_blocks_used=0)


def test_request_in_the_queue_is_freed_and_those_before_it_go_on(slow_daemon: RunningDaemon) -> None:
    some = {"max_tokens": 150, "ignore_eos": True}
    alone = chat(slow_daemon, **some).json
    with ExitStack() as stack:
        connections = [stack.enter_context(asked(slow_daemon, some)) for _ in range(SLOTS)]
        wait_until(slow_daemon, running=SLOTS)
        with asked(slow_daemon, some):
            wait_until(slow_daemon, waiting=1)
        wait_until(slow_daemon, waiting=0)
        for connection in connections:
            assert json.loads(connection.getresponse().read())["choices"] == alone["choices"]
    assert report(slow_daemon)["output_tokens"] == (SLOTS + 1) * alone["usage"]["completion_tokens"]


def test_request_in_prefill_is_freed(slow_daemon: RunningDaemon) -> None:
    messages = [{"role": "user", "content": "x" * (CONTEXT_LEN // 2)}]
    with asked(slow_daemon, {"messages": messages, "stream": True, "ignore_eos": True}) as connection:
        wait_until(slow_daemon, running=1)
        assert connection.sock is not None
        connection.sock.shutdown(socket.SHUT_RDWR)
    wait_until(slow_daemon, running=0, waiting=0, kv_blocks_used=0)
