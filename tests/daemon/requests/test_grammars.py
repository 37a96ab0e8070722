from __future__ import annotations

import json
import re
from typing import Any

import pytest

from llmd.api.messages import Grammar
from llmd.requests.fields import BadRequestError, RequestFields
from llmd.requests.grammars import read_grammar
from tests.serving.http import Reply, chat, complete
from tests.serving.running import RunningDaemon

SCHEMA = {"type": "object", "properties": {"b": {"enum": [1, 2]}, "a": {"type": "boolean"}}}
STRICT = SCHEMA | {"additionalProperties": False, "required": ["b", "a"]}
GBNF = 'root ::= "x" [0-9]{2}'
LARK = 'start: "x" /[0-9]{2}/'


def read(**fields: Any) -> Any:
    return read_grammar(RequestFields(fields))


def schema(**fields: Any) -> Any:
    grammar = read(**fields).grammar
    assert grammar.kind == "json_schema"
    return json.loads(grammar.text)


def test_no_field_binds_nothing() -> None:
    fields: dict[str, Any]
    for fields in (
        {},
        {"response_format": {"type": "text"}},
        {"response_format": None},
        {"structured_outputs": {}},
    ):
        assert read(**fields).grammar is None
    for fields in ({"guided_choice": []}, {"grammar": ""}, {"structured_outputs": {"json_object": False}}):
        assert read(**fields).grammar is None


def test_schemas_come_in_every_form() -> None:
    plain = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
    assert schema(response_format=plain) == SCHEMA
    strict = {"type": "json_schema", "json_schema": {"schema": SCHEMA, "strict": True}}
    assert schema(response_format=strict) == STRICT
    assert list(schema(response_format=strict)["properties"]) == ["b", "a"]
    assert schema(guided_json=SCHEMA) == schema(guided_json=json.dumps(SCHEMA)) == SCHEMA
    assert schema(structured_outputs={"json": SCHEMA}) == SCHEMA


def test_objects_are_closed_in_llama_cpps_fields_alone() -> None:
    closed = SCHEMA | {"additionalProperties": False}
    assert schema(json_schema=SCHEMA) == schema(json_schema=json.dumps(SCHEMA)) == closed
    assert schema(response_format={"type": "json_object", "schema": SCHEMA}) == closed
    says = SCHEMA | {"additionalProperties": True}
    assert schema(json_schema=says) == says


@pytest.mark.parametrize(
    ("fields", "grammar"),
    [
        ({"response_format": {"type": "json_object"}}, Grammar("json_object")),
        ({"structured_outputs": {"json_object": True}}, Grammar("json_object")),
        ({"guided_regex": "a+"}, Grammar("regex", "a+")),
        ({"structured_outputs": {"regex": "a+"}}, Grammar("regex", "a+")),
        ({"guided_choice": ["a", "b"]}, Grammar("choice", '["a", "b"]')),
        ({"structured_outputs": {"choice": ["a"]}}, Grammar("choice", '["a"]')),
        ({"grammar": GBNF}, Grammar("gbnf", GBNF)),
        ({"guided_grammar": LARK}, Grammar("lark", LARK)),
        ({"structured_outputs": {"grammar": GBNF}}, Grammar("gbnf", GBNF)),
    ],
)
def test_grammars_come_from_every_field(fields: dict[str, Any], grammar: Grammar) -> None:
    choice = read(**fields)
    assert choice.grammar == grammar
    (field,) = fields
    assert choice.param.partition(".")[0] == field


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"response_format": {"type": "xml"}}, "response_format"),
        ({"response_format": "json"}, "response_format"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}, "response_format"),
        ({"json_schema": 5}, "json_schema"),
        ({"guided_json": "{"}, "guided_json"),
        ({"guided_choice": "yes"}, "guided_choice"),
        ({"guided_choice": [1]}, "guided_choice"),
        ({"grammar": 5}, "grammar"),
        ({"structured_outputs": "x"}, "structured_outputs"),
        ({"structured_outputs": {"regex": 5}}, "structured_outputs.regex"),
        ({"structured_outputs": {"structural_tag": "x"}}, "structured_outputs.structural_tag"),
        ({"grammar": GBNF, "guided_regex": "a"}, "guided_regex"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        read(**fields)
    assert caught.value.param == param


def test_what_only_tunes_is_told_as_ignored() -> None:
    choice = read(structured_outputs={"regex": "a", "disable_any_whitespace": True})
    assert choice.ignored == ("structured_outputs.disable_any_whitespace",)


def content(reply: Reply) -> str:
    assert reply.status == 200, reply.content
    (choice,) = reply.json["choices"]
    assert choice["finish_reason"] == "stop"
    text: str = choice["message"]["content"] if "message" in choice else choice["text"]
    return text


def test_answers_follow_what_was_asked(daemon: RunningDaemon) -> None:
    strict = {"type": "json_schema", "json_schema": {"schema": SCHEMA, "strict": True}}
    answer = json.loads(content(chat(daemon, max_tokens=100, response_format=strict)))
    assert list(answer) == ["b", "a"]
    assert re.fullmatch("x[0-9]{2}", content(chat(daemon, grammar=GBNF)))
    assert re.fullmatch("x[0-9]{2}", content(complete(daemon, guided_grammar=LARK)))
    assert content(complete(daemon, structured_outputs={"choice": ["yes", "no"]})) in {"yes", "no"}
    assert re.fullmatch("[ab]{5}", content(chat(daemon, guided_regex="[ab]{5}", temperature=1.5, seed=1)))


def test_every_choice_is_bound_and_streams_tell_the_same(daemon: RunningDaemon) -> None:
    fields = {"guided_regex": "[a-z]{6}", "n": 3, "temperature": 1.0, "seed": 5, "max_tokens": 20}
    whole = [one["message"]["content"] for one in chat(daemon, **fields).json["choices"]]
    assert all(re.fullmatch("[a-z]{6}", text) for text in whole)
    assert len(set(whole)) == 3
    streamed = dict.fromkeys(range(3), "")
    for chunk in chat(daemon, stream=True, **fields).chunks:
        for choice in chunk["choices"]:
            streamed[choice["index"]] += choice["delta"].get("content", "")
    assert list(streamed.values()) == whole


def test_a_token_limit_inside_the_json_is_told_as_length(daemon: RunningDaemon) -> None:
    reply = chat(daemon, max_tokens=3, json_schema={"type": "object", "required": ["a long name"]})
    assert reply.json["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("fields", "param", "named"),
    [
        (
            {"response_format": {"type": "json_object", "schema": {"uniqueItems": True}}},
            "response_format",
            "uniqueItems at #",
        ),
        ({"guided_json": {"items": {"not": {"multipleOf": 2}}}}, "guided_json", "multipleOf at #/items"),
        ({"guided_regex": "(?=a)"}, "guided_regex", "look-around"),
        ({"grammar": "root ::= nothing"}, "grammar", "the rule nothing"),
        ({"structured_outputs": {"grammar": "start: nothing"}}, "structured_outputs.grammar", "nothing"),
        ({"json_schema": {"type": "integer", "multipleOf": 999983}}, "json_schema", "not compiled within"),
    ],
)
def test_what_cannot_be_enforced_is_a_400_that_names_it_before_any_stream(
    daemon: RunningDaemon,
    fields: dict[str, Any],
    param: str,
    named: str,
    stream: bool,  # noqa: FBT001
) -> None:
    reply = chat(daemon, stream=stream, **fields)
    assert reply.status == 400
    assert reply.headers["content-type"].startswith("application/json")
    assert (reply.error["code"], reply.error["param"]) == ("unsupported_schema", param)
    assert named in reply.error["message"]
