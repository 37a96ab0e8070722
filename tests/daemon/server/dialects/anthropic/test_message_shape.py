from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic.types import Message, RawMessageStreamEvent

from llmd.api.parts import AnswerPart, CallArguments, CallStart, Reasoning, Text
from llmd.requests.ending import EndChoice
from llmd.server.dialects.anthropic.message_shape import SIGNATURE, MessageShape
from llmd.server.generation.generation import Usage
from tests.clients.strict import check
from tests.serving.pieces import pieces

USAGE = Usage(prompt_tokens=20, cached_tokens=16, completion_tokens=5)
THINKING_AND_CALLS = (
    Reasoning("h"),
    Reasoning("m"),
    Text("I look."),
    CallStart(0, "read"),
    CallArguments(0, '{"path":'),
    CallArguments(0, '"a"}'),
    CallStart(1, "list"),
)


def shape(*, shown: bool = True, max_tokens: int | None = 5) -> MessageShape:
    return MessageShape("m", EndChoice(max_tokens, strings=("END",)), thinking_is_shown=shown)


def body(*parts: AnswerPart, shown: bool = True, max_tokens: int | None = 5, **ending: Any) -> Message:
    made = shape(shown=shown, max_tokens=max_tokens)
    for piece in pieces(*parts, **ending):
        made.add(piece)
    message = check(Message, json.dumps(made.body(USAGE)))
    assert isinstance(message, Message)
    return message


def events(*parts: AnswerPart, shown: bool = True) -> list[dict[str, Any]]:
    made = shape(shown=shown)
    found = [made.start(USAGE)]
    found += [event for piece in pieces(*parts) for event in made.events(piece)]
    found += made.end(USAGE)
    for event in found:
        check(RawMessageStreamEvent, json.dumps(event))
    return found


def test_each_item_is_a_block() -> None:
    thinking, text, read, listing = body(*THINKING_AND_CALLS).content
    assert thinking.model_dump() == {"type": "thinking", "thinking": "hm", "signature": SIGNATURE}
    assert (text.type, text.text) == ("text", "I look.") if text.type == "text" else False
    assert read.type == listing.type == "tool_use"
    assert (read.name, read.input, listing.name, listing.input) == ("read", {"path": "a"}, "list", {})
    assert read.id.startswith("toolu_")
    assert read.id != listing.id


def test_blocks_are_opened_and_closed_in_order() -> None:
    found = events(*THINKING_AND_CALLS)
    assert found[0]["message"]["content"] == []
    assert found[0]["message"]["stop_reason"] is None
    deltas = [event["delta"] for event in found if event["type"] == "content_block_delta"]
    assert [delta["type"] for delta in deltas] == [
        "thinking_delta", "thinking_delta", "signature_delta",
        "text_delta",
        "input_json_delta", "input_json_delta",
        "input_json_delta",
    ]  # fmt: skip
    assert deltas[-1]["partial_json"] == "{}"
    edges = [(e["type"][14:], e["index"]) for e in found if e["type"].endswith(("block_start", "block_stop"))]
    assert edges == [(edge, index) for index in range(4) for edge in ("start", "stop")]
    assert found[-2]["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}
    assert found[-2]["usage"] == found[0]["message"]["usage"]
    assert found[-1] == {"type": "message_stop"}


def test_blocks_begin_empty() -> None:
    starts = [e["content_block"] for e in events(*THINKING_AND_CALLS) if e["type"] == "content_block_start"]
    assert starts[0] == {"type": "thinking", "thinking": "", "signature": ""}
    assert starts[1] == {"type": "text", "text": ""}
    assert starts[2].items() >= {"type": "tool_use", "name": "read", "input": {}}.items()


def test_hidden_reasoning_keeps_its_block_and_no_text() -> None:
    (thinking, _) = body(Reasoning("hm"), Text("a"), shown=False).content
    assert thinking.model_dump() == {"type": "thinking", "thinking": "", "signature": SIGNATURE}
    assert "thinking_delta" not in json.dumps(events(Reasoning("hm"), Text("a"), shown=False))


@pytest.mark.parametrize(
    ("ending", "max_tokens", "reason"),
    [
        ({"finish": "stop"}, 5, "end_turn"),
        ({"finish": "stop", "stop": "END"}, 5, "stop_sequence"),
        ({"finish": "stop", "stop": "the model's own"}, 5, "end_turn"),
        ({"finish": "length"}, 5, "max_tokens"),
        ({"finish": "length"}, 6, "model_context_window_exceeded"),
        ({"finish": "length"}, None, "model_context_window_exceeded"),
    ],
)
def test_the_reason_of_the_end(ending: dict[str, Any], max_tokens: int | None, reason: str) -> None:
    message = body(Text("a"), max_tokens=max_tokens, **ending)
    assert message.stop_reason == reason
    assert message.stop_sequence == ("END" if reason == "stop_sequence" else None)


def test_usage_counts_cached_tokens_apart() -> None:
    usage = body(Text("a")).usage
    assert (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens) == (4, 16, 5)


def test_arguments_that_the_limit_cut_off_are_none() -> None:
    (call,) = body(CallStart(0, "f"), CallArguments(0, '{"a": "b'), finish="length").content
    assert call.type == "tool_use"
    assert call.input == {}
