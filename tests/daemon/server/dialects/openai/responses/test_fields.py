from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from openai.types.responses import ResponseFormatTextConfig

from llmd.api.messages import Grammar
from llmd.requests.fields import BadRequestError, RequestFields
from llmd.server.dialects.openai.responses.fields import (
    LOGPROBS,
    read_logprobs,
    read_max_tokens,
    read_metadata,
    read_reasoning,
    read_text,
    read_truncation,
)
from tests.clients.strict import check


def test_reasoning_effort_is_a_variable_of_the_template_and_none_turns_thinking_off() -> None:
    assert read_reasoning(RequestFields({})).variables == {}
    low = read_reasoning(RequestFields({"reasoning": {"effort": "low", "summary": "auto", "odd": 1}}))
    assert low.variables == {"reasoning_effort": "low"}
    assert low.echo() == {"effort": "low", "summary": "auto"}
    assert low.ignored == ("reasoning.odd",)
    off = read_reasoning(RequestFields({"reasoning": {"effort": "none"}}))
    assert off.variables == {"reasoning_effort": "none", "enable_thinking": False, "thinking": False}


def test_summary_has_an_older_name() -> None:
    assert read_reasoning(RequestFields({"reasoning": {"generate_summary": "concise"}})).summary == "concise"


@pytest.mark.parametrize(
    ("body", "expected"),
    [({}, None), ({"top_logprobs": 0}, None), ({"top_logprobs": 3}, 3), ({"include": [LOGPROBS]}, 0)],
)
def test_logprobs_come_where_they_are_included(body: dict[str, Any], expected: int | None) -> None:
    assert read_logprobs(RequestFields(body)) == expected


def test_plain_fields_have_their_defaults() -> None:
    fields = RequestFields({})
    assert read_max_tokens(fields) is None
    assert read_metadata(fields) == {}
    assert read_truncation(fields) == "disabled"
    assert read_text(fields).echo() == {"format": {"type": "text"}}


def test_an_answer_may_be_bound_to_json_or_a_schema() -> None:
    schema = {"type": "object", "properties": {"b": {}, "a": {}}}
    form = {"type": "json_schema", "name": "x", "schema": schema, "strict": False}
    bound = read_text(RequestFields({"text": {"format": form}}))
    assert bound.grammar is not None
    assert (bound.grammar.kind, json.loads(bound.grammar.text)) == ("json_schema", schema)
    echoed = check(ResponseFormatTextConfig, json.dumps(bound.form))
    assert (echoed.name, echoed.schema_, echoed.strict) == ("x", schema, False)
    strict = read_text(RequestFields({"text": {"format": {**form, "strict": True}}})).grammar
    assert strict is not None
    assert json.loads(strict.text)["required"] == ["b", "a"]
    assert read_text(RequestFields({"text": {"format": {"type": "json_object"}}})).grammar == Grammar(
        "json_object"
    )


def test_what_only_tunes_a_text_is_ignored() -> None:
    assert read_text(RequestFields({"text": {"verbosity": "low"}})).ignored == ("text.verbosity",)


@pytest.mark.parametrize(
    ("read", "body", "param"),
    [
        (read_reasoning, {"reasoning": {"effort": "huge"}}, "effort"),
        (read_reasoning, {"reasoning": {"summary": "long"}}, "summary"),
        (read_reasoning, {"reasoning": "low"}, "reasoning"),
        (read_logprobs, {"top_logprobs": 21}, "top_logprobs"),
        (read_logprobs, {"include": LOGPROBS}, "include"),
        (read_max_tokens, {"max_output_tokens": -1}, "max_output_tokens"),
        (read_metadata, {"metadata": {"a": 1}}, "metadata"),
        (read_metadata, {"metadata": {str(n): "" for n in range(17)}}, "metadata"),
        (read_truncation, {"truncation": "some"}, "truncation"),
        (read_text, {"text": {"format": {"type": "xml"}}}, "text.format.type"),
        (read_text, {"text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format.schema"),
    ],
)
def test_values_out_of_range_are_refused_by_name(
    read: Callable[[RequestFields], object], body: dict[str, Any], param: str
) -> None:
    with pytest.raises(BadRequestError) as caught:
        read(RequestFields(body))
    assert caught.value.param is not None
    assert caught.value.param.endswith(param)
