from __future__ import annotations

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import RequestError, TemplateError
from llmd.chat.templates.renderer import TemplateRenderer
from llmd.chat.templates.template_files import ChatTemplate

GOLDEN = Path(__file__).parents[3] / "golden/templates"
FAMILIES: dict[str, dict[str, str | list[str]]] = json.loads((GOLDEN / "families.json").read_text())
CONVERSATIONS: dict[str, dict[str, Any]] = json.loads((GOLDEN / "conversations.json").read_text())
EXPECTED: dict[str, dict[str, dict[str, str]]] = json.loads((GOLDEN / "expected.json").read_text())
SPECIALS = frozenset({"<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|end|>", "<end_of_turn>", "[/INST]"})

HELLO = [{"role": "user", "content": "hello"}]
ECHO = ChatTemplate({"default": "{{ messages[0].content }}"})
ENDLESS = "{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}"


def family(name: str) -> ChatTemplate:
    texts = {text for text in FAMILIES[name].values() if isinstance(text, str)}
    return ChatTemplate({"default": (GOLDEN / f"{name}.jinja").read_text()}, FAMILIES[name], SPECIALS | texts)


def render(renderer: TemplateRenderer, template: ChatTemplate, conversation: dict[str, Any]) -> str:
    return renderer.render(template, **conversation).text


@pytest.mark.parametrize("name", FAMILIES)
def test_renders_as_transformers_does(name: str, renderer: TemplateRenderer) -> None:
    accepted = {key: case["text"] for key, case in EXPECTED[name].items() if "text" in case}
    template = family(name)
    assert {key: render(renderer, template, CONVERSATIONS[key]) for key in accepted} == accepted
    assert len(accepted) >= 6


@pytest.mark.parametrize(
    ("name", "key"), [("gemma2", "system"), ("llama2", "late_system"), ("mistral", "late_system")]
)
def test_system_text_that_a_template_refuses_is_folded_in(
    name: str, key: str, renderer: TemplateRenderer
) -> None:
    assert "refused" in EXPECTED[name][key]
    text = render(renderer, family(name), CONVERSATIONS[key])
    systems = [m["content"].strip() for m in CONVERSATIONS[key]["messages"] if m["role"] == "system"]
    assert all(system in text for system in systems)


def test_values_nested_too_deeply_are_refused(renderer: TemplateRenderer) -> None:
    nested: Any = "hello"
    for _ in range(5000):
        nested = [nested]
    with pytest.raises(RequestError, match="nested too deeply"):
        renderer.render(ECHO, [{**HELLO[0], "more": nested}])


@pytest.mark.parametrize("source", ["{{ raise_exception('x' * 100000) }}", "{{ messages['y' * 100000].z }}"])
def test_reason_of_a_template_is_cut(source: str, renderer: TemplateRenderer) -> None:
    with pytest.raises((RequestError, TemplateError)) as caught:
        renderer.render(ChatTemplate({"default": source}), HELLO)
    assert 1000 < len(caught.value.message) < 1100


def test_refusal_of_a_template_is_the_clients_mistake(renderer: TemplateRenderer) -> None:
    with pytest.raises(RequestError, match="user and assistant must take turns") as caught:
        renderer.render(family("llama2"), [*HELLO, *HELLO])
    assert caught.value.param == "messages"


@pytest.mark.parametrize("source", [ENDLESS, "{{ (7 ** (10 ** 8)) % 3 }}"])
def test_render_over_the_time_limit_is_ended_and_the_next_one_works(source: str) -> None:
    with TemplateRenderer() as renderer:
        with pytest.raises(TemplateError, match="did not finish within 2 s"):
            renderer.render(ChatTemplate({"default": source}), HELLO)
        assert renderer.render(ECHO, HELLO).text == "hello"


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'x' * 2000000000 }}",
        "{{ messages[0].content | center(3000000000) }}",
        "{% set ns = namespace(x=['a']) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
    ],
)
def test_render_over_the_memory_limit_is_ended_and_the_next_one_works(
    source: str, renderer: TemplateRenderer
) -> None:
    with pytest.raises(TemplateError, match="out of memory") as caught:
        renderer.render(ChatTemplate({"default": source}), HELLO)
    assert "memory" in caught.value.hint
    assert renderer.render(ECHO, HELLO).text == "hello"


def test_process_that_dies_between_renders_is_replaced(renderer: TemplateRenderer) -> None:
    renderer.render(ECHO, HELLO)
    assert renderer._process is not None
    os.kill(renderer._process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, renderer._process.pid, os.WEXITED | os.WNOWAIT)
    assert renderer.render(ECHO, HELLO).text == "hello"


def test_renderer_works_again_after_it_was_closed(renderer: TemplateRenderer) -> None:
    renderer.close()
    renderer.close()
    assert renderer.render(ECHO, HELLO).text == "hello"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{% if %}", "line 1"),
        ("{{ messages.__class__.__mro__ }}", "unsafe"),
        ("{{ messages[7].content.x }}", "UndefinedError"),
        ("{{ 1 + 'a' }}", "TypeError"),
        ("{% unknown %}", "unknown"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "RecursionError"),
    ],
)
def test_broken_template_says_what_is_wrong(source: str, message: str, renderer: TemplateRenderer) -> None:
    with pytest.raises(TemplateError, match=message) as caught:
        renderer.render(ChatTemplate({"default": source}), HELLO)
    assert caught.value.hint


def test_special_texts_of_a_request_are_literals_wherever_they_stand(renderer: TemplateRenderer) -> None:
    source = (
        "<|im_start|>{{ messages[0].content | trim | upper }}{{ tools | tojson }}{{ extra_text }}<|im_end|>"
    )
    template = ChatTemplate({"default": source}, {}, frozenset({"<|im_start|>", "<|im_end|>"}))
    messages = [{"role": "user", "content": " a<|im_end|> "}]
    prompt = renderer.render(
        template, messages, tools=[{"<|im_end|>": 1}], extra={"extra_text": "<|im_start|>"}
    )
    assert prompt.text == '<|im_start|>A<|im_end|>[{"<|im_end|>": 1}]<|im_start|><|im_end|>'
    literals = [segment.text for segment in prompt.segments if segment.literal]
    assert literals == ["<|im_end|>", "<|im_end|>", "<|im_start|>"]
    assert not prompt.segments[0].literal
    assert not prompt.segments[-1].literal


def test_variables_of_a_request_do_not_replace_the_conversation(renderer: TemplateRenderer) -> None:
    with pytest.raises(RequestError, match="may not set 'messages'") as caught:
        renderer.render(ECHO, HELLO, extra={"messages": []})
    assert caught.value.param == "chat_template_kwargs"


def test_last_message_can_be_left_open(renderer: TemplateRenderer, chatml: ChatTemplate) -> None:
    messages = [*HELLO, {"role": "assistant", "content": "Once upon "}]
    text = renderer.render(chatml, messages, continue_final_message=True).text
    assert text == "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\nOnce upon "


def test_message_that_the_template_does_not_show_cannot_be_continued(renderer: TemplateRenderer) -> None:
    with pytest.raises(RequestError, match="cannot be continued"):
        renderer.render(ECHO, [*HELLO, {"role": "assistant", "content": "x"}], continue_final_message=True)


def test_value_that_cannot_be_rendered_is_the_clients_mistake(renderer: TemplateRenderer) -> None:
    with pytest.raises(RequestError, match="cannot be rendered"):
        renderer.render(ECHO, [{"role": "user", "content": "x", "n": 2**70}])


def test_time_in_a_prompt_is_the_clocks() -> None:
    def clock() -> datetime:
        return datetime(2026, 2, 3)  # noqa: DTZ001 — templates write local time

    with TemplateRenderer(clock=clock) as renderer:
        template = ChatTemplate({"default": "{{ strftime_now('%d %B %Y') }}"})
        assert renderer.render(template, HELLO).text == "03 February 2026"


def test_threads_share_a_renderer(renderer: TemplateRenderer) -> None:
    def ask(number: int) -> str:
        return renderer.render(ECHO, [{"role": "user", "content": str(number)}]).text

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(64))) == [str(number) for number in range(64)]
