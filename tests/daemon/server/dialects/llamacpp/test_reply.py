from __future__ import annotations

from tests.serving.http import send
from tests.serving.running import MODEL, RunningDaemon


def test_ignored_fields_are_named_whole_and_streamed(daemon: RunningDaemon) -> None:
    body = {"model": MODEL, "prompt": "Hello", "n_predict": 1, "id_slot": 3, "cache_prompt": True}
    for stream in (False, True):
        reply = send(daemon, "POST", "/completion", {**body, "stream": stream})
        assert reply.headers["x-llmd-ignored"] == "cache_prompt, id_slot"
        assert reply.headers["x-llmd-model"] == MODEL


def test_failure_before_the_first_event_has_a_status_of_its_own(daemon: RunningDaemon) -> None:
    body = {"model": MODEL, "prompt": "x" * 600, "stream": True}
    reply = send(daemon, "POST", "/completion", body)
    assert (reply.status, reply.error["code"]) == (400, "context_length_exceeded")
    assert reply.error["n_ctx"] == 512
