from __future__ import annotations

import json
from typing import Any

import pytest

from llmd.chat.answers.thinking import effort_budget
from llmd.requests.fields import BadRequestError, RequestFields
from llmd.server.dialects.anthropic.fields import (
    read_anthropic_sampling,
    read_end,
    read_output_config,
    read_thinking,
)


def test_sampling_and_end_have_their_own_names() -> None:
    fields = RequestFields(
        {"temperature": 0.5, "top_p": 0.9, "top_k": 40, "max_tokens": 7, "stop_sequences": ["a"]}
    )
    sampling, end = read_anthropic_sampling(fields), read_end(fields)
    assert (sampling.temperature, sampling.top_p, sampling.top_k) == (0.5, 0.9, 40)
    assert (end.max_tokens, end.strings) == (7, ("a",))
    assert fields.ignored == ()


def test_token_limit_has_a_default() -> None:
    assert read_end(RequestFields({})).max_tokens == 4096
    assert read_end(RequestFields({"max_tokens": 0})).max_tokens == 0


@pytest.mark.parametrize(
    ("body", "variables"),
    [
        ({}, {}),
        ({"thinking": {"type": "disabled"}}, {"enable_thinking": False, "thinking": False}),
        ({"thinking": {"type": "adaptive"}}, {"enable_thinking": True, "thinking": True}),
    ],
)
def test_thinking_is_a_variable_of_the_template(body: dict[str, Any], variables: dict[str, Any]) -> None:
    thinking = read_thinking(RequestFields(body), None)
    assert (thinking.variables, thinking.is_shown, thinking.ignored) == (variables, True, ())


def test_an_answer_may_be_bound_to_a_schema_and_its_effort_given() -> None:
    schema = {"type": "object", "properties": {"b": {}, "a": {}}}
    form = {"type": "json_schema", "schema": schema}
    output = read_output_config(RequestFields({"output_config": {"effort": "low", "format": form}}))
    assert output.grammar is not None
    assert (output.grammar.kind, json.loads(output.grammar.text)) == ("json_schema", schema)
    assert read_thinking(RequestFields({}), output.effort).variables == {"reasoning_effort": "low"}
    assert read_output_config(RequestFields({})).grammar is None


def test_thinking_may_be_hidden_and_what_is_not_honoured_is_said() -> None:
    body = {"thinking": {"type": "enabled", "odd": 1, "display": "omitted"}}
    thinking = read_thinking(RequestFields(body), None)
    assert not thinking.is_shown
    assert thinking.ignored == ("thinking.odd",)


def test_thinking_has_the_budget_that_is_named_or_that_of_its_effort() -> None:
    named = RequestFields({"thinking": {"type": "enabled", "budget_tokens": 2000}})
    assert read_thinking(named, "high").budget == 2000
    assert read_thinking(RequestFields({}), "high").budget == effort_budget("high")
    assert read_thinking(RequestFields({}), None).budget is None


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"temperature": 1.1}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"top_k": -1}, "top_k"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"stop_sequences": ["a"] * 65}, "stop_sequences"),
        ({"thinking": {"type": "perhaps"}}, "thinking.type"),
        ({"thinking": "enabled"}, "thinking"),
        ({"output_config": {"effort": "huge"}}, "output_config.effort"),
        ({"output_config": {"format": {"type": "regex"}}}, "output_config.format.type"),
        ({"output_config": {"format": {"type": "json_schema"}}}, "output_config.format.schema"),
    ],
)
def test_values_out_of_range_are_refused_by_name(body: dict[str, Any], param: str) -> None:
    def read(fields: RequestFields) -> tuple[object, ...]:
        return (
            read_anthropic_sampling(fields),
            read_end(fields),
            read_thinking(fields, None),
            read_output_config(fields),
        )

    with pytest.raises(BadRequestError) as caught:
        read(RequestFields(body))
    assert caught.value.param == param
