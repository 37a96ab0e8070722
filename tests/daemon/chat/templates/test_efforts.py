from __future__ import annotations

from typing import Any

import pytest

from llmd.api.errors import RequestError
from llmd.chat.templates.efforts import Efforts
from llmd.chat.templates.render_errors import TemplateRefusedError
from llmd.chat.templates.renderer import TemplateRenderer
from llmd.chat.templates.template_files import ChatTemplate

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
HELLO = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}]
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {}}}]
# As Qwen3.8's: xhigh is the default, and efforts are checked only where the model is to think.
STRICT = (
    "{% set effort = reasoning_effort | default('xhigh') %}"
    "{% if enable_thinking is not defined or enable_thinking %}"
    "{% if effort not in ['low', 'medium', 'xhigh'] %}{{ raise_exception('no effort ' ~ effort) }}{% endif %}"
    "{{ 'effort ' ~ effort ~ '\n' }}{% endif %}"
    "{% for m in messages %}"
    "{% if m.role not in ['system', 'user'] %}{{ raise_exception('no role ' ~ m.role) }}{% endif %}"
    "{{ m.content ~ '\n' }}{% endfor %}"
)
# As Hunyuan's.
THREE = (
    "{% if reasoning_effort is defined and reasoning_effort not in ['no_think', 'low', 'high'] %}"
    "{{ raise_exception('no effort ' ~ reasoning_effort) }}{% endif %}{{ reasoning_effort }}"
)
# Joining a text with a missing one is an error.
LOOKUP = "{{ 'effort ' + {'low': 'brief', 'high': 'deep'}[reasoning_effort | default('low')] }}"
NO_EFFORT = "{{ raise_exception('has no efforts') if reasoning_effort is defined else 'plain' }}"
HARMONY = "{{ reasoning_effort | default('medium') }}{% if false %}<|channel|>{% endif %}"


def render(renderer: TemplateRenderer, source: str, effort: Any, **fields: Any) -> str:
    extra = {"reasoning_effort": effort, **fields.pop("extra", {})}
    return renderer.render(
        ChatTemplate({"default": source}), fields.pop("messages", HELLO), extra=extra, **fields
    ).text


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (STRICT, "low low low medium xhigh xhigh xhigh"),
        (THREE, "no_think low low high high high high"),
        (LOOKUP, "brief brief brief deep deep deep deep"),
        (NO_EFFORT, "plain plain plain plain plain plain plain"),
        (HARMONY, "low low low medium high high high"),
    ],
    ids=["strict", "three", "lookup", "no-effort", "harmony"],
)
def test_template_gets_the_nearest_effort_that_it_accepts(
    source: str, expected: str, renderer: TemplateRenderer
) -> None:
    for _ in range(2):
        texts = [render(renderer, source, effort) for effort in EFFORTS]
        assert [text.partition("\n")[0].removeprefix("effort ") for text in texts] == expected.split()


def test_system_text_keeps_its_place_when_an_effort_is_replaced(renderer: TemplateRenderer) -> None:
    assert render(renderer, STRICT, "high") == "effort xhigh\nBe brief.\nhello\n"


@pytest.mark.parametrize("effort", ["low", "xhigh"])
def test_refused_messages_are_the_error_whatever_the_effort(effort: str, renderer: TemplateRenderer) -> None:
    odd = [*HELLO, {"role": "narrator", "content": "once"}]
    with pytest.raises(RequestError, match="no role narrator") as caught:
        render(renderer, STRICT, effort, messages=odd)
    assert caught.value.hint.endswith("or change its variables: reasoning_effort")
    render(renderer, STRICT, "high")
    with pytest.raises(RequestError, match="no role narrator"):
        render(renderer, STRICT, "high", messages=odd)


def test_name_that_no_api_defines_is_refused_by_the_template(renderer: TemplateRenderer) -> None:
    with pytest.raises(RequestError, match="no effort huge") as caught:
        render(renderer, STRICT, "huge")
    assert "reasoning_effort" in caught.value.hint


class Recorder:
    """Stands for a template: it accepts some efforts, and records those that it is rendered with."""

    def __init__(self, *accepted: object) -> None:
        self.accepted = accepted
        self.seen: list[object] = []

    def __call__(self, variables: dict[str, Any]) -> str:
        effort = variables.get("reasoning_effort")
        self.seen.append(effort)
        if effort not in self.accepted:
            raise TemplateRefusedError(f"no effort {effort}")
        return str(effort)


def test_choice_is_remembered_for_the_template_and_effort() -> None:
    efforts, template = Efforts(), Recorder(None, "low", "medium")
    assert efforts.render("a", {"reasoning_effort": "high"}, template) == "medium"
    assert template.seen == ["high", None, "xhigh", "medium"]
    template.seen.clear()
    assert efforts.render("a", {"reasoning_effort": "high"}, template) == "medium"
    assert template.seen == ["medium"]
    assert efforts.render("b", {"reasoning_effort": "high"}, Recorder(None, "high")) == "high"


def test_effort_that_is_refused_only_with_tools_or_without_thinking_is_kept_in_other_prompts() -> None:
    efforts, nothing, high = Efforts(), Recorder(None), Recorder(None, "high")
    asked = {"reasoning_effort": "high"}
    assert efforts.render("a", {**asked, "tools": TOOLS}, nothing) == "None"
    assert efforts.render("a", {**asked, "enable_thinking": False}, nothing) == "None"
    assert efforts.render("a", asked, high) == "high"


def test_template_that_also_fails_without_the_effort_is_not_tried_with_others() -> None:
    template = Recorder("low")
    with pytest.raises(TemplateRefusedError, match="no effort high"):
        Efforts().render("a", {"reasoning_effort": "high"}, template)
    assert template.seen == ["high", None]


def test_accepted_effort_is_rendered_once() -> None:
    template = Recorder("high", None)
    assert Efforts().render("a", {"reasoning_effort": "high"}, template) == "high"
    assert Efforts().render("a", {}, template) == "None"
    assert template.seen == ["high", None]


def test_value_that_is_no_name_is_left_to_the_template() -> None:
    template = Recorder(None, ["high"])
    assert Efforts().render("a", {"reasoning_effort": ["high"]}, template) == "['high']"
    with pytest.raises(TemplateRefusedError):
        Efforts().render("a", {"reasoning_effort": ["low"]}, template)
    assert template.seen == [["high"], ["low"]]
