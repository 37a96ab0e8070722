from __future__ import annotations

import pytest

from tests.serving.http import send
from tests.serving.running import MODEL, RunningDaemon

HELLO = {"model": MODEL, "messages": [{"role": "user", "content": "Hello"}]}


@pytest.mark.parametrize("path", ["/v1/messages/count_tokens", "/v1/chat/completions/input_tokens"])
def test_a_prompt_of_any_length_is_counted(daemon: RunningDaemon, path: str) -> None:
    def counted(text: str) -> int:
        body = {**HELLO, "messages": [{"role": "user", "content": text}]}
        found: int = send(daemon, "POST", path, body).json["input_tokens"]
        return found

    assert counted("x" * 5000) - counted("x") == 4999


def test_a_model_that_is_not_there_is_not_counted_for(daemon: RunningDaemon) -> None:
    reply = send(daemon, "POST", "/v1/messages/count_tokens", {**HELLO, "model": "nobody"})
    assert (reply.status, reply.error["type"]) == (404, "not_found_error")
