from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from llmd.api.errors import RequestError, TemplateError
from llmd.api.messages import Grammar
from llmd.chat.model_text import ModelText
from llmd.chat.templates.template_files import ChatTemplate
from llmd.registry.derived import DerivedModel
from llmd.registry.store import Store
from llmd.requests.fields import BadRequestError, RequestFields
from llmd.server.dialects.ollama.request import read_format, read_request, read_template, think_variables
from llmd.server.models.model_table import ModelTable
from tests.serving.model_managers import residents_of

THINKING = "{% if enable_thinking %}<think>{% endif %}"


@pytest.fixture
def table(tmp_path: Path) -> ModelTable:
    store = Store(tmp_path, {})
    parameters = {"temperature": 0.1, "num_predict": 5}
    store.derived.save("mario", DerivedModel(base="m", created=0.0, parameters=parameters))
    return ModelTable(store, {"hero": "mario"}, residents_of())


@pytest.mark.parametrize("name", ["mario", "mario:latest", "hero"])
def test_options_of_a_derived_model_hold_where_the_request_has_none(table: ModelTable, name: str) -> None:
    asked = read_request(RequestFields({"model": name, "options": {"num_predict": 7, "odd": 1}}), table)
    assert (asked.options.sampling.temperature, asked.options.end.max_tokens) == (0.1, 7)
    assert asked.ignored == ("options.odd",)


@pytest.mark.parametrize("template", ["{{ .Prompt }}", "{{- if .System }}x{{ end }}", "{{/* no */}}"])
def test_templates_of_go_are_refused_and_those_of_jinja_taken(template: str) -> None:
    with pytest.raises(BadRequestError, match="Jinja"):
        read_template(RequestFields({"template": template}))
    jinja = "{% for m in messages %}{{ m.content }}{% endfor %}"
    assert read_template(RequestFields({"template": jinja})) == jinja
    assert read_template(RequestFields({})) == ""


def test_answers_are_streamed_unless_told_otherwise(table: ModelTable) -> None:
    body = {"model": "m", "user": "me", "options": {"num_gpu": 1}}
    asked = read_request(RequestFields(body), table)
    assert (asked.stream, asked.think, asked.grammar, asked.truncate) == (True, None, None, False)
    assert asked.ignored == ("user", "options.num_gpu")


@pytest.mark.parametrize(
    ("value", "grammar"),
    [
        ("", None),
        (None, None),
        ("json", Grammar("json_object")),
        ({"type": "string"}, Grammar("json_schema", '{"type": "string"}')),
        ({"properties": {}}, Grammar("json_schema", '{"properties": {}, "additionalProperties": false}')),
    ],
)
def test_format_is_json_or_a_schema(value: Any, grammar: Grammar | None) -> None:
    assert read_format(RequestFields({"format": value})) == grammar


@pytest.mark.parametrize(
    "body", [{"format": "xml"}, {"format": 5}, {"think": "much"}, {"think": 2}, {"top_logprobs": 2}]
)
def test_other_values_are_refused_by_name(table: ModelTable, body: dict[str, Any]) -> None:
    with pytest.raises(BadRequestError) as caught:
        read_request(RequestFields({"model": "m", **body}), table)
    assert caught.value.param == next(iter(body))


def test_thinking_is_a_variable_of_the_template(text: ModelText) -> None:
    thinking = structs.replace(text, template=ChatTemplate({"default": THINKING}))
    assert think_variables(None, thinking, "m") == {}
    assert think_variables(False, thinking, "m") == {"enable_thinking": False, "thinking": False}
    assert think_variables("high", thinking, "m") == {
        "enable_thinking": True,
        "thinking": True,
        "reasoning_effort": "high",
    }


def test_thinking_is_refused_where_the_model_knows_none(text: ModelText) -> None:
    bare = structs.replace(text, template=TemplateError("there is none"))
    for model in (text, bare):
        with pytest.raises(RequestError, match="tiny does not support thinking"):
            think_variables(True, model, "tiny")
        assert think_variables(False, model, "tiny")["enable_thinking"] is False
