from __future__ import annotations

import json

import pytest

from llmd.api.parsing import SchemaTerm
from llmd.builtin.parsers.cursor import MalformedError
from llmd.builtin.parsers.json_calls import call_terms, json_calls, whole_arguments
from llmd.builtin.parsers.script_reader import ScriptReader
from tests.daemon.builtin.parsers.readings import WEATHER, Call, joined, run

ZURICH = ("get_weather", '{"city": "Zürich"}')


def read(text: str) -> list[str | Call]:
    return joined(run(ScriptReader(["!"], json_calls(closing="/", separator=";")), list(text)))


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "get_weather", "arguments": {"city": "Zürich"}}',
        '{"name": "get_weather", "parameters": {"city": "Zürich"}}',
        '{"arguments": {"city": "Zürich"}, "name": "get_weather"}',
        '{"id": "a1", "name": "get_weather", "arguments": {"city": "Zürich"}, "type": "function"}',
        '{"type": "function", "function": {"name": "get_weather", "arguments": {"city": "Zürich"}}}',
        '{"function": "get_weather", "parameters": {"city": "Zürich"}}',
        '\n {"name" : "get_weather","arguments": "{\\"city\\": \\"Zürich\\"}"}\n/',
        '[{"name": "get_weather", "arguments": {"city": "Zürich"}}] /',
    ],
)
def test_call_is_read_in_every_form_that_models_write(text: str) -> None:
    assert read(f"!{text}") == [ZURICH]


@pytest.mark.parametrize("arguments", ["", ', "arguments": {}', ', "arguments": null', ', "arguments": ""'])
def test_call_without_arguments_has_an_empty_object(arguments: str) -> None:
    assert read(f'!{{"name": "now"{arguments}}}') == [("now", "{}")]


@pytest.mark.parametrize(
    "text",
    [
        "no call",
        '{"name": "", "arguments": {}}',
        '{"name": 7}',
        '{"arguments": {"city": "x"}}',
        '{"name": "now", "arguments": [1]}',
        '{"name": "now", "arguments": "city"}',
        '{"name": "now"',
        '{"name" "now"}',
        "[]",
    ],
)
def test_malformed_call_is_text(text: str) -> None:
    assert read(f"a !{text}/") == [f"a !{text}/"]


def test_calls_follow_each_other_in_a_list_or_with_a_separator() -> None:
    one, two = '{"name": "a"}', '{"name": "b", "arguments": {"x": [1]}}'
    both = [("a", "{}"), ("b", '{"x": [1]}')]
    assert read(f"![{one}, {two}]/") == read(f"!{one} ; {two}") == read(f"!{one}/\n!{two}/\n") == both


def test_text_after_calls_is_kept() -> None:
    assert read('!{"name": "a"}/ and so on') == [("a", "{}"), " and so on"]


def test_call_that_breaks_off_has_told_what_it_had() -> None:
    assert read('!{"name": "a", "arguments": {"x": "lon') == [("a", '{"x": "lon')]


def test_arguments_go_out_while_they_come() -> None:
    reader = ScriptReader(["!"], json_calls())
    texts = ['!{"name": "a", "arguments": {', '"x": "lo', 'ng"', "}}"]
    emitted = [
        joined(reader.feed(text)) if place == 0 else reader.feed(text) for place, text in enumerate(texts)
    ]
    assert emitted[0] == [("a", "{")]
    assert ["".join(part.json for part in parts) for parts in emitted[1:]] == ['"x": "lo', 'ng"', "}"]  # type: ignore[union-attr]


def test_only_known_names_are_calls_where_nothing_else_marks_one() -> None:
    reader = ScriptReader([], json_calls(names={"a"}), at_start=True)
    text = '{"name": "b", "arguments": {}}'
    assert joined(run(reader, [text])) == [text]


def test_whole_arguments_are_refused_unless_they_are_an_object() -> None:
    for text in ("[]", "1", '"[1]"', '"x"'):
        with pytest.raises(MalformedError):
            whole_arguments(text)


def test_grammar_writes_what_is_read() -> None:
    head, schema, tail = call_terms(WEATHER, before="<", after=">")
    assert schema == SchemaTerm(WEATHER.parameters)
    assert json.loads(f"{head}{{}}{tail}"[1:-1]) == {"name": "get_weather", "arguments": {}}
