from __future__ import annotations

from typing import Any

import pytest

from llmd.api.parsing import CallFormat, ChoiceTerm, TextTerm, Tool
from llmd.builtin.parsers.gemma import load_function_gemma, load_gemma4
from tests.daemon.builtin.parsers.readings import only_call, read

STYLES = [
    (load_function_gemma(), "<start_function_call>", "<end_function_call>", "<escape>"),
    (load_gemma4(), "<|tool_call>", "<tool_call|>", '<|"|>'),
]


@pytest.mark.parametrize(("form", "begin", "end", "quote"), STYLES)
@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ("", {}),
        ("city:'Zürich, {a}',days:3", {"city": "Zürich, {a}", "days": 3}),
        ("a:true,b:null,c:-1.5", {"a": True, "b": None, "c": -1.5}),
        ("a:[1,'x',[]],b:{c:{},'d e':'y'}", {"a": [1, "x", []], "b": {"c": {}, "d e": "y"}}),
        ("city:Bern", {"city": "Bern"}),
        ("city:'a \"quoted\" \\n'", {"city": 'a "quoted" \\n'}),
    ],
)
def test_arguments_are_written_with_marks_for_quotes(
    form: CallFormat, begin: str, end: str, quote: str, arguments: str, value: dict[str, Any]
) -> None:
    answer = f"{begin}call:get_weather{{{arguments.replace(chr(39), quote)}}}{end}"
    assert only_call(form, answer) == ("get_weather", value)


@pytest.mark.parametrize(("form", "begin", "end", "quote"), STYLES)
def test_several_calls_follow_each_other(form: CallFormat, begin: str, end: str, quote: str) -> None:
    answer = f"Yes.{begin}call:now{{}}{end}{begin}call:now{{}}{end}"
    assert read(form, answer) == ["Yes.", ("now", "{}"), ("now", "{}")]


@pytest.mark.parametrize(("form", "begin", "end", "quote"), STYLES)
@pytest.mark.parametrize("inside", ["", "now{}", "call:{}", "call:now"])
def test_marks_without_a_call_are_text(
    form: CallFormat, begin: str, end: str, quote: str, inside: str
) -> None:
    assert read(form, f"{begin}{inside}{end}") == [f"{begin}{inside}{end}"]


def test_the_mark_of_a_result_ends_an_answer_of_gemma4() -> None:
    assert load_gemma4().ends == ("<|tool_response>",)
    assert load_function_gemma().ends == ()


def test_a_definition_that_contains_itself_is_a_text_there() -> None:
    tree = {"type": "object", "properties": {"next": {"$ref": "#/$defs/tree"}}, "required": ["next"]}
    root = {"properties": {"t": {"$ref": "#/$defs/tree"}}, "required": ["t"], "$defs": {"tree": tree}}
    (terms,) = load_gemma4().grammar([Tool("f", root)]).calls
    quote = '<|"|>'
    assert terms == ("call:f{", "t:", "{", "next:", quote, TextTerm(quote), "}", "}<tool_call|>")


@pytest.mark.parametrize(
    ("schema", "begin"), [({"items": {"type": "boolean"}}, "["), ({"properties": {}}, "{"), ({}, '<|"|>')]
)
def test_a_type_that_is_not_stated_is_that_of_other_keys(schema: dict[str, Any], begin: str) -> None:
    root = {"properties": {"value": schema}, "required": ["value"]}
    (terms,) = load_gemma4().grammar([Tool("f", root)]).calls
    assert terms[2] == begin


def test_constants_are_written_as_the_family_writes_values() -> None:
    words = ["x", 1, None, [True, "y"], {"a": "b"}]
    root = {"properties": {"value": {"enum": words}}, "required": ["value"]}
    (terms,) = load_gemma4().grammar([Tool("f", root)]).calls
    written = ('<|"|>x<|"|>', "1", "null", '[true,<|"|>y<|"|>]', '{a:<|"|>b<|"|>}')
    assert terms[2] == ChoiceTerm(tuple((one,) for one in written))
