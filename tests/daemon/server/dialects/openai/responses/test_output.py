from __future__ import annotations

import json
from typing import Any

from openai.types.responses import ResponseOutputItem

from llmd.api.parts import AnswerPart, CallArguments, CallStart, Reasoning, Text
from llmd.chat.answers.answer_text import AnswerToken
from llmd.server.dialects.openai.responses.calls import Call, CustomCall, FunctionCall
from llmd.server.dialects.openai.responses.output import Output
from tests.clients.strict import check
from tests.clients.strict_responses import check_event
from tests.serving.pieces import piece, pieces

PARTS = (
    Reasoning("h"),
    Reasoning("m"),
    Text("I "),
    Text("look."),
    CallStart(0, "read"),
    CallArguments(0, '{"path":'),
    CallArguments(0, '"a"}'),
    CallStart(1, "list"),
)


def call(shown: str) -> Call:
    named = {"name": shown, "namespace": "files"} if shown == "read" else {"name": shown}
    return CustomCall(named) if shown == "patch" else FunctionCall(named)


def no_entries(_tokens: tuple[AnswerToken, ...]) -> list[dict[str, Any]]:
    return []


def run(
    *parts: AnswerPart, finish: str = "stop", summarized: bool = False
) -> tuple[Output, list[dict[str, Any]]]:
    """Return the output of these parts and its events; every event is checked against the client's types."""
    output = Output(call, no_entries, summarized=summarized)
    events = [event for made in pieces(*parts, finish=finish) for event in output.events(made)]
    for number, event in enumerate(events):
        check_event(json.dumps({**event, "sequence_number": number}))
    for item in output.items:
        check(ResponseOutputItem, json.dumps(item))
    return output, events


def names(events: list[dict[str, Any]], output_index: int) -> list[str]:
    return [event["type"][9:] for event in events if event["output_index"] == output_index]


def test_each_item_is_told_of_before_it_grows_and_once_it_is_whole() -> None:
    _, events = run(*PARTS)
    assert names(events, 0) == [
        "output_item.added",
        "reasoning_text.delta",
        "reasoning_text.delta",
        "reasoning_text.done",
        "output_item.done",
    ]
    assert names(events, 1) == [
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
    ]
    arguments = ["function_call_arguments.delta", "function_call_arguments.done", "output_item.done"]
    assert names(events, 2) == ["output_item.added", arguments[0], *arguments]
    assert names(events, 3) == ["output_item.added", *arguments]
    assert [event["output_index"] for event in events] == sorted(event["output_index"] for event in events)


def test_items_are_whole_in_the_output() -> None:
    output, _ = run(*PARTS)
    thought, text, read, listing = output.items
    assert thought["content"] == [{"type": "reasoning_text", "text": "hm"}]
    assert text["content"] == [{"type": "output_text", "text": "I look.", "annotations": [], "logprobs": []}]
    assert (read["name"], read["namespace"], read["arguments"]) == ("read", "files", '{"path":"a"}')
    assert (listing["name"], listing["arguments"]) == ("list", "{}")
    assert [item["id"].split("_")[0] for item in output.items] == ["rs", "msg", "fc", "fc"]
    assert {item["status"] for item in output.items} == {"completed"}


def test_the_input_of_a_custom_tool_comes_in_its_own_events() -> None:
    output, events = run(CallStart(0, "patch"), CallArguments(0, '{"input":'), CallArguments(0, '"a"}'))
    assert names(events, 0) == [
        "output_item.added",
        "custom_tool_call_input.delta",
        "custom_tool_call_input.done",
        "output_item.done",
    ]
    assert events[0]["item"]["input"] == ""
    (item,) = output.items
    assert (item["type"], item["name"], item["input"]) == ("custom_tool_call", "patch", "a")
    assert item["id"].startswith("ctc_")


def test_a_call_has_an_id_of_its_own_beside_that_of_its_item() -> None:
    output, events = run(*PARTS)
    calls = [item for item in output.items if item["type"] == "function_call"]
    assert len({call["call_id"] for call in calls} | {call["id"] for call in calls}) == 4
    added = [event["item"] for event in events if event["type"] == "response.output_item.added"]
    assert [(item["id"], item.get("call_id")) for item in added] == [
        (item["id"], item.get("call_id")) for item in output.items
    ]
    assert added[2]["arguments"] == ""


def test_deltas_joined_are_what_is_done() -> None:
    _, events = run(*PARTS)
    for index, field in ((0, "text"), (1, "text"), (2, "arguments"), (3, "arguments")):
        mine = [event for event in events if event["output_index"] == index]
        done = next(event for event in mine if field in event)
        assert "".join(event["delta"] for event in mine if "delta" in event) == done[field]


def test_reasoning_may_be_told_as_its_summary() -> None:
    output, events = run(Reasoning("hm"), Text("a"), summarized=True)
    assert names(events, 0) == [
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
    ]
    assert (output.items[0]["summary"], output.items[0]["content"]) == (
        [{"type": "summary_text", "text": "hm"}],
        [],
    )


def test_the_item_that_a_limit_cut_off_is_incomplete() -> None:
    output, _ = run(Reasoning("hm"), Text("a"), finish="length")
    assert [item["status"] for item in output.items] == ["completed", "incomplete"]


def test_logprobs_go_with_the_text_that_they_are_of() -> None:
    def entries(tokens: tuple[AnswerToken, ...]) -> list[dict[str, Any]]:
        top = [{"token": "x", "logprob": -1.0, "bytes": [120]}]
        return [
            {"token": str(token.token_id), "logprob": -0.5, "bytes": [49], "top_logprobs": top}
            for token in tokens
        ]

    output = Output(call, entries, summarized=False)
    made = [piece(Reasoning("h"), AnswerToken(1, 0)), piece(Text("a"), AnswerToken(2, 0))]
    made += [piece(Text("b"), AnswerToken(3, 1)), *pieces()]
    events = [event for one in made for event in output.events(one)]
    for event in events:
        check_event(json.dumps({**event, "sequence_number": 0}))
    deltas = [event["logprobs"] for event in events if event["type"] == "response.output_text.delta"]
    assert [[entry["token"] for entry in logprobs] for logprobs in deltas] == [["2"], ["3"]]
    whole = output.items[1]["content"][0]["logprobs"]
    assert [entry["token"] for entry in whole] == ["2", "3"]
    assert whole[0]["bytes"] == [49]


def test_an_answer_of_nothing_has_no_items() -> None:
    output, events = run()
    assert (output.items, events) == ([], [])
