"""The chat templates of seventy published models render as plain jinja2 renders them,
set up as transformers does.

That `templates/plain_jinja.py` is set up like it was checked once with transformers 4.57.6 itself: for all of
these templates and conversations, `apply_chat_template` gave the same texts and errors.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
import pytest
from jinja2.exceptions import SecurityError
from msgspec import Struct

from llmd.api.errors import RequestError, TemplateError
from llmd.chat.answers.thinking import thinking_variables
from llmd.chat.templates.renderer import TemplateRenderer
from llmd.chat.templates.template_files import ChatTemplate
from llmd.chat.templates.template_messages import foldings
from tests.golden import samples
from tests.golden.samples import FIX, TEMPLATES
from tests.golden.templates import plain_jinja

CONVERSATIONS_OF = Path(__file__).parent / "templates"
NAMES = sorted(path.name for path in TEMPLATES.glob("*.jinja"))
HELLO = [{"role": "user", "content": "Hello"}]
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
NOW = datetime(2026, 3, 2, 15, 4, 5, tzinfo=UTC)
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
SPECIALS = frozenset({"<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|end|>", "<end_of_turn>"})
"""Texts that occur in the conversations: placeholders stand for them while a template renders."""


def conversations() -> dict[str, dict[str, Any]]:
    """By name; the arguments of calls are objects, and reasoning has both names, as templates want them."""
    found: dict[str, dict[str, Any]] = {}
    for name in ("conversations.json", "real_conversations.json"):
        found |= json.loads((CONVERSATIONS_OF / name).read_text())
    for conversation in found.values():
        for message in conversation["messages"]:
            if "reasoning_content" in message:
                message["thinking"] = message["reasoning_content"]
            for call in message.get("tool_calls", []):
                if isinstance(call["function"]["arguments"], str):
                    call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return found


CONVERSATIONS = conversations()


@pytest.fixture(scope="module")
def renderer() -> Iterator[TemplateRenderer]:
    with TemplateRenderer(clock=lambda: NOW) as made:
        yield made


def test_the_templates_of_seventy_models_are_there() -> None:
    assert len(NAMES) == 70, f"{TEMPLATES} has {len(NAMES)} templates: {FIX}"


@pytest.mark.parametrize("name", NAMES)
def test_renders_as_plain_jinja_does(name: str, renderer: TemplateRenderer) -> None:
    source = samples.named(TEMPLATES / name).read_text()
    compiled = plain_jinja.environment(NOW).from_string(source)
    template = ChatTemplate({"default": source}, TOKENS, SPECIALS)
    texts = 0
    for key, conversation in CONVERSATIONS.items():
        expected = plainly(compiled, with_known_roles(conversation, source))
        texts += isinstance(expected, str)
        assert ours(renderer, template, conversation) == expected, key
    assert texts, "no conversation is accepted"


def test_every_template_renders_with_every_effort_that_an_api_defines(renderer: TemplateRenderer) -> None:
    hello = {"messages": HELLO}
    for name in NAMES:
        template = ChatTemplate({"default": samples.named(TEMPLATES / name).read_text()}, TOKENS, SPECIALS)
        plain = ours(renderer, template, hello)
        for effort in EFFORTS:
            text = ours(renderer, template, {**hello, "extra": thinking_variables(effort=effort)})
            assert isinstance(text, str) or text == plain, (name, effort)


@pytest.mark.parametrize(
    ("name", "before", "efforts"),
    [
        ("openai-gpt-oss-120b.jinja", "Reasoning: ", "low low low medium high high high"),
        ("tencent-Hy3.jinja", "reasoning_effort:", "no_think low low high high high high"),
    ],
)
def test_model_gets_the_nearest_effort_that_it_knows(
    name: str, before: str, efforts: str, renderer: TemplateRenderer
) -> None:
    template = ChatTemplate({"default": samples.named(TEMPLATES / name).read_text()}, TOKENS, SPECIALS)
    texts = [renderer.render(template, HELLO, extra=thinking_variables(effort=each)).text for each in EFFORTS]
    found = [text.partition(before)[2] for text in texts]
    assert [text.startswith(effort) for text, effort in zip(found, efforts.split(), strict=True)] == [
        True
    ] * 7, found


class Failure(Struct, frozen=True):
    """Why there is no text."""

    reason: str


def plainly(template: jinja2.Template, conversation: Mapping[str, Any]) -> str | Failure:
    """The text, or the error: the first one, where no form of the conversation is accepted."""
    refusals = []
    for messages in foldings(conversation["messages"]):
        try:
            return plain_jinja.render(template, {**conversation, "messages": messages}, TOKENS)
        except SecurityError as exc:
            return Failure(str(exc))
        except Exception as exc:  # noqa: BLE001 — expressions of a template may raise anything
            if type(exc) is not jinja2.TemplateError:
                return Failure(f"{type(exc).__name__}: {exc}")
            refusals.append(Failure(f"refused: {exc}"))
    return refusals[0]


def ours(
    renderer: TemplateRenderer, template: ChatTemplate, conversation: Mapping[str, Any]
) -> str | Failure:
    """The text, or the error as `plainly` writes it."""
    try:
        return renderer.render(template, **conversation).text
    except RequestError as exc:
        return Failure(exc.message.replace("the model's chat template refuses the messages", "refused"))
    except TemplateError as exc:
        return Failure(exc.message.removeprefix("the chat template failed: "))


def with_known_roles(conversation: Mapping[str, Any], source: str) -> dict[str, Any]:
    """A developer speaks as the system where the template knows no developers."""
    messages = conversation["messages"]
    if "developer" not in source:
        messages = [{**m, "role": "system"} if m["role"] == "developer" else m for m in messages]
    return {**conversation, "messages": messages}
