from __future__ import annotations

from typing import Any

import pytest

from llmd.server.models.served_model import ServedModel
from tests.serving.http import Reply, send
from tests.serving.running import MODEL, RunningDaemon

RESPONSES = "/v1/responses"


def ask(daemon: RunningDaemon, path: str = RESPONSES, **fields: Any) -> Reply:
    defaults = {"model": MODEL, "input": "Hello", "max_output_tokens": 4, "temperature": 0}
    return send(daemon, "POST", path, {**defaults, **fields})


def test_model_is_answered_under_the_name_that_was_asked_for(daemon: RunningDaemon) -> None:
    reply = ask(daemon, model="gpt-4o")
    assert reply.json["model"] == "gpt-4o"
    assert reply.headers["x-llmd-model"] == MODEL


def test_responses_are_kept_only_on_request(daemon: RunningDaemon) -> None:
    kept = ask(daemon, store=True).json
    shown = send(daemon, "GET", f"{RESPONSES}/{kept['id']}")
    assert (shown.status, shown.json) == (200, kept)
    for store in (None, False):
        body = ask(daemon, store=store).json
        missing = send(daemon, "GET", f"{RESPONSES}/{body['id']}")
        assert (missing.status, missing.error["code"]) == (404, "response_not_found")


def test_streamed_responses_are_kept_too(daemon: RunningDaemon) -> None:
    body = ask(daemon, store=True, stream=True).chunks[-1]["response"]
    assert send(daemon, "GET", f"{RESPONSES}/{body['id']}").json == body


def test_a_kept_response_is_gone_once_it_is_deleted(daemon: RunningDaemon) -> None:
    path = f"{RESPONSES}/{ask(daemon, store=True).json['id']}"
    deleted = send(daemon, "DELETE", path)
    assert deleted.json == {"id": path.rsplit("/", maxsplit=1)[-1], "object": "response", "deleted": True}
    assert send(daemon, "GET", path).status == 404
    assert send(daemon, "DELETE", path).status == 404


def test_a_conversation_goes_on_from_a_kept_response(daemon: RunningDaemon) -> None:
    first = ask(daemon, store=True).json
    whole = [{"role": "user", "content": "Hello"}, *first["output"], {"role": "user", "content": "More"}]
    by_hand = ask(daemon, input=whole).json
    second = ask(daemon, input="More", previous_response_id=first["id"], store=True).json
    assert second["output"][0]["content"] == by_hand["output"][0]["content"]
    assert second["usage"]["input_tokens"] == by_hand["usage"]["input_tokens"]
    assert second["previous_response_id"] == first["id"]
    third = ask(daemon, input="More", previous_response_id=second["id"]).json
    assert third["usage"]["input_tokens"] > second["usage"]["input_tokens"]


def test_an_unknown_response_cannot_be_gone_on_from(daemon: RunningDaemon) -> None:
    reply = ask(daemon, previous_response_id="resp_nobody")
    assert (reply.status, reply.error["code"]) == (400, "previous_response_not_found")
    assert "store: true" in reply.error["message"]


def test_what_is_ignored_is_named_in_a_header(daemon: RunningDaemon) -> None:
    reply = ask(daemon, prompt_cache_key="a", tools=[{"type": "web_search"}], client_metadata={"a": "b"})
    assert reply.headers["x-llmd-ignored"] == "client_metadata, prompt_cache_key, tools%5B0%5D.web_search"


def test_tokens_are_counted_without_the_engine(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def asked(_self: ServedModel) -> None:
        raise AssertionError("the engine was waited for")

    with monkeypatch.context() as patch:
        patch.setattr(ServedModel, "ready", asked)
        counted = ask(daemon, f"{RESPONSES}/input_tokens", instructions="Be short.").json
    usage = ask(daemon, instructions="Be short.").json["usage"]
    assert counted == {"object": "response.input_tokens", "input_tokens": usage["input_tokens"]}
