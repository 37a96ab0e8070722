"""More requests than the daemon can take, and requests that take too long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.serving.engine_state import asked, wait_until
from tests.serving.http import chat, complete, send
from tests.serving.model import write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon

CHAT = "/v1/chat/completions"
# An answer of this many tokens takes longer than any test.
CONTEXT_LEN = 1 << 15
LONG = {"max_tokens": CONTEXT_LEN, "ignore_eos": True}
HELLO = {"model": MODEL, "messages": [{"role": "user", "content": "Hello"}], "temperature": 0}
IN_TIME = {"x-request-timeout-ms": "2000"}


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory, probes: Path) -> Iterator[RunningDaemon]:
    """One slot, and two places in the queue."""
    directories = directories_below(tmp_path_factory.mktemp("narrow"), cache=probes)
    write_model(directories.models / MODEL, context_len=CONTEXT_LEN)
    with running_daemon(directories, slots=1, max_queue=2) as running:
        yield running


@pytest.mark.parametrize("stream", [False, True])
def test_full_queue_answers_503_before_any_stream_and_says_when_to_come_back(
    narrow: RunningDaemon, *, stream: bool
) -> None:
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(asked(narrow, LONG))
        wait_until(narrow, running=1, waiting=2)
        refused = chat(narrow, stream=stream)
        assert (refused.status, refused.error["code"]) == (503, "queue_full")
        assert refused.error["type"] == "unavailable_error"
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert int(refused.headers["retry-after-ms"]) == 1000 * int(refused.headers["retry-after"])
        assert "x-should-retry" not in refused.headers
    wait_until(narrow, running=0, waiting=0, kv_blocks_used=0)
    assert chat(narrow).status == 200


def test_waiting_request_of_a_lower_priority_number_runs_first(narrow: RunningDaemon) -> None:
    with ExitStack() as stack:
        with asked(narrow, LONG):
            wait_until(narrow, running=1)
            stack.enter_context(asked(narrow, {**LONG, "priority": 1}))
            wait_until(narrow, waiting=1)
            first = stack.enter_context(asked(narrow, {**LONG, "priority": -1, "stream": True}))
            wait_until(narrow, waiting=2)
        assert first.getresponse().readline().startswith(b"data:")
        wait_until(narrow, running=1, waiting=1)


@pytest.mark.parametrize("stream", [False, True])
def test_request_that_waits_beyond_its_deadline_is_a_408(narrow: RunningDaemon, *, stream: bool) -> None:
    with asked(narrow, LONG):
        wait_until(narrow, running=1)
        late = send(narrow, "POST", CHAT, {**HELLO, "stream": stream}, IN_TIME)
        assert (late.status, late.error["code"]) == (408, "deadline_exceeded")
        assert late.error["type"] == "timeout_error"
        wait_until(narrow, running=1, waiting=0)


def test_stream_at_its_deadline_ends_with_an_error_and_frees_its_blocks(narrow: RunningDaemon) -> None:
    reply = send(narrow, "POST", CHAT, {**HELLO, **LONG, "stream": True}, IN_TIME)
    assert reply.status == 200
    assert reply.chunks[-1]["error"]["code"] == "deadline_exceeded"
    assert "[DONE]" not in reply.lines[-1]
    wait_until(narrow, running=0, waiting=0, kv_blocks_used=0)


def test_deadline_of_the_server_holds_for_every_request(tmp_path: Path, probes: Path) -> None:
    directories = directories_below(tmp_path, cache=probes)
    write_model(directories.models / MODEL, context_len=CONTEXT_LEN)
    with running_daemon(directories, request_timeout_s=2.0) as daemon:
        assert complete(daemon, max_tokens=1).status == 200
        assert complete(daemon, **LONG).status == 408
        wait_until(daemon, running=0, kv_blocks_used=0)


def test_malformed_deadline_is_refused(daemon: RunningDaemon) -> None:
    refused = send(daemon, "POST", CHAT, HELLO, {"x-request-timeout-ms": "soon"})
    assert (refused.status, refused.error["param"]) == (400, "x-request-timeout-ms")


def test_salts_keep_cached_prefixes_apart(daemon: RunningDaemon) -> None:
    content = "a prompt of more than one block of sixteen tokens"

    def cached(salt: str | None) -> int:
        usage = chat(daemon, content, cache_salt=salt, max_tokens=1).json["usage"]
        return int(usage["prompt_tokens_details"]["cached_tokens"])

    cached("one")
    assert cached("one") > 0
    assert cached("two") == 0
