from __future__ import annotations

from typing import Any

import pytest
from openai.types.responses import ResponseCompactionItem
from openai.types.responses.response_usage import ResponseUsage

from llmd.server.dialects.openai.responses.summary import HEAD
from tests.clients.strict import check
from tests.serving.http import Reply, send
from tests.serving.running import MODEL, RunningDaemon
from tests.serving.script import answer_with

COMPACT = "/v1/responses/compact"
COUNT = "/v1/responses/input_tokens"
USER = {"role": "user", "content": "What is the capital of France?"}
ASSISTANT = {"role": "assistant", "content": "Paris."}
SUMMARY = "The capital is Paris."


def compact(daemon: RunningDaemon, **fields: Any) -> Reply:
    return send(daemon, "POST", COMPACT, {"model": MODEL, **fields})


def counted(daemon: RunningDaemon, items: list[Any]) -> int:
    tokens: int = send(daemon, "POST", COUNT, {"model": MODEL, "input": items}).json["input_tokens"]
    return tokens


def test_the_messages_of_the_user_stay_and_a_summary_follows(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(monkeypatch, SUMMARY)
    reply = compact(daemon, input=[USER, ASSISTANT])
    body = reply.json
    assert (reply.status, body["object"], reply.headers["x-llmd-model"]) == (
        200,
        "response.compaction",
        MODEL,
    )
    user, item = body["output"]
    assert (user["type"], user["role"], user["status"]) == ("message", "user", "completed")
    assert user["content"] == [{"type": "input_text", "text": USER["content"]}]
    check(ResponseCompactionItem, reply_bytes(item))
    check(ResponseUsage, reply_bytes(body["usage"]), beyond=frozenset({"cache_write_tokens"}))
    assert body["usage"]["output_tokens"] > 0
    assert SUMMARY not in reply.content.decode()


def reply_bytes(value: Any) -> bytes:
    from llmd.server.http.json_line import encode_json

    return encode_json(value)


def test_later_requests_take_the_result_in_place_of_the_conversation(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(monkeypatch, SUMMARY)
    output = compact(daemon, input=[USER, ASSISTANT]).json["output"]
    more = {"role": "user", "content": "And of Spain?"}
    by_hand = [USER, {"role": "assistant", "content": HEAD + SUMMARY}, more]
    assert counted(daemon, [*output, more]) == counted(daemon, by_hand)
    again = compact(daemon, input=[*output, more])
    assert [item["type"] for item in again.json["output"]] == ["message", "message", "compaction"]


def test_the_model_sees_the_instructions_and_the_whole_conversation(daemon: RunningDaemon) -> None:
    whole = compact(daemon, input=[USER, ASSISTANT]).json["usage"]["input_tokens"]
    assert whole > counted(daemon, [USER, ASSISTANT, USER])
    assert (
        compact(daemon, input=[USER, ASSISTANT], instructions="Be short.").json["usage"]["input_tokens"]
        > whole
    )


def test_a_stored_response_is_compacted_with_its_conversation(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(monkeypatch, SUMMARY)
    fields = {"model": MODEL, "input": [USER], "store": True}
    kept = send(daemon, "POST", "/v1/responses", fields).json
    output = compact(daemon, previous_response_id=kept["id"]).json["output"]
    assert [item["type"] for item in output] == ["message", "compaction"]
    longer = compact(daemon, previous_response_id=kept["id"], input="More").json["output"]
    assert [item["content"][0]["text"] for item in longer[:-1]] == [USER["content"], "More"]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, "invalid_value"),
        ({"input": []}, "invalid_value"),
        ({"input": "a", "previous_response_id": "resp_nobody"}, "previous_response_not_found"),
        ({"input": [{"type": "compaction", "encrypted_content": "gAAAA"}]}, "invalid_encrypted_content"),
    ],
)
def test_what_cannot_be_compacted_is_refused(
    daemon: RunningDaemon, fields: dict[str, Any], code: str
) -> None:
    reply = compact(daemon, **fields)
    assert (reply.status, reply.error["code"]) == (400, code)


def test_a_model_that_writes_nothing_is_a_failure(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(monkeypatch, " \n")
    reply = compact(daemon, input=[USER])
    assert reply.status == 500
    assert "no summary" in reply.error["message"]
