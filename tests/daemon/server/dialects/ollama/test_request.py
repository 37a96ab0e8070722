from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from llmd.api.errors import RequestError, TemplateError
from llmd.api.messages import Grammar
from llmd.chat.model_text import ModelText
from llmd.chat.template_files import ChatTemplate
from llmd.server.dialects.ollama.request import read_asked, read_format, think_variables
from llmd.server.errors import BadRequestError
from llmd.server.request_fields import RequestFields

THINKING = "{% if enable_thinking %}<think>{% endif %}"


def test_answers_are_streamed_unless_told_otherwise() -> None:
    asked = read_asked(RequestFields({"model": "m", "user": "me", "options": {"num_gpu": 1}}))
    assert (asked.stream, asked.think, asked.grammar, asked.truncate) == (True, None, None, False)
    assert asked.ignored == ("user", "options.num_gpu")


@pytest.mark.parametrize(
    ("value", "grammar"),
    [
        ("", None),
        (None, None),
        ("json", Grammar("json_object")),
        ({"type": "string"}, Grammar("json_schema", '{"type":"string"}')),
    ],
)
def test_format_is_json_or_a_schema(value: Any, grammar: Grammar | None) -> None:
    assert read_format(RequestFields({"format": value})) == grammar


@pytest.mark.parametrize(
    "body", [{"format": "xml"}, {"format": 5}, {"think": "much"}, {"think": 2}, {"top_logprobs": 2}]
)
def test_other_values_are_refused_by_name(body: dict[str, Any]) -> None:
    with pytest.raises(BadRequestError) as caught:
        read_asked(RequestFields({"model": "m", **body}))
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
