"""The evaluation with tools: enough requests that no training template could make, scored strictly."""

from __future__ import annotations

from collections import Counter

import jsonschema
import pytest

from guide.evaluate import score_tools
from guide.templates import Templates
from guide.tool_questions import ToolQuestion, read_tool_questions
from guide.tool_text import calls_text, results_text, told

PING = {"name": "ping", "parameters": {"type": "object", "properties": {"host": {"type": "string"}}}}
CALL = ("ping", {"host": "a"})


def test_there_are_fifty_requests_and_more_of_every_kind() -> None:
    questions = read_tool_questions()
    kinds = Counter(question.kind for question in questions)
    assert len(questions) >= 50
    assert kinds["tool calls"] >= 40
    assert kinds["tool results"] >= 10
    assert kinds["no call"] >= 10


@pytest.mark.timeout(120)
def test_no_training_template_could_make_a_request(templates: Templates) -> None:
    asked = {question.ask for question in read_tool_questions()}
    assert {text: found for text in asked if (found := templates.match(text))} == {}
    assert templates.match("Please turn on the lights in the kitchen") == "lights"


def test_the_calls_that_are_expected_fit_their_tools() -> None:
    for question in read_tool_questions():
        parameters = {tool["name"]: tool["parameters"] for tool in question.tools}
        for name, arguments in question.calls:
            jsonschema.validate(arguments, {**parameters[name], "additionalProperties": False})


def test_a_call_must_have_the_name_and_the_arguments() -> None:
    question = ToolQuestion("", [PING], [CALL])
    assert question.is_right(calls_text([CALL]))
    for wrong in ([("ping", {"host": "b"})], [("pong", {"host": "a"})], [CALL, CALL], []):
        assert not question.is_right(calls_text(wrong))
    assert not question.is_right("<tool_call>{oops</tool_call>")


def test_where_no_tool_fits_a_call_is_wrong() -> None:
    question = ToolQuestion("", [PING], [])
    assert question.is_right("Hello!")
    assert not question.is_right(calls_text([CALL]))


def test_after_a_result_the_answer_tells_it_and_calls_no_more() -> None:
    question = ToolQuestion("hi", [PING], [CALL], ("14 ms",), ("14", "ms"))
    assert question.is_right("It took 14 ms.")
    assert not question.is_right("It took 15 ms.")
    assert not question.is_right(f"14 ms {calls_text([CALL])}")
    assert [message["content"] for message in question.messages] == [
        told([PING]),
        "hi",
        calls_text([CALL]),
        results_text(["14 ms"]),
    ]


def test_scores_count_each_kind_for_itself() -> None:
    questions = [ToolQuestion("", [PING], [CALL]), ToolQuestion("", [PING], [])]
    scores, wrong = score_tools(questions, ["no", "no"])
    assert {kind: (counts.right, counts.asked) for kind, counts in scores.items()} == {
        "tool calls": (0, 1),
        "no call": (1, 1),
    }
    assert [one.expected for one in wrong] == [calls_text([CALL])]
