"""Chat templates in plain jinja2, set up as the documentation of
transformers' ``apply_chat_template`` says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(Extension):
    """The block that marks answers, of which a prompt shows no more than its content."""

    tags = {"generation"}  # noqa: RUF012 — jinja2 asks for a plain set on the class

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("shown"), [], [], body).set_lineno(line)

    def shown(self, caller: Any) -> str:
        return str(caller())


def environment(now: datetime) -> jinja2.Environment:
    """An environment in which it is always ``now``."""
    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    made.filters["tojson"] = to_json
    made.globals |= {"raise_exception": raise_exception, "strftime_now": now.strftime}
    return made


def to_json(value: Any, ensure_ascii: bool = False, **options: Any) -> str:  # noqa: FBT001, FBT002
    return json.dumps(value, ensure_ascii=ensure_ascii, **options)


def raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def render(template: jinja2.Template, conversation: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """What a conversation becomes; ``names`` are the special tokens that the template may write."""
    return template.render(
        messages=conversation["messages"],
        tools=conversation.get("tools"),
        documents=conversation.get("documents"),
        add_generation_prompt=conversation.get("add_generation_prompt", True),
        **names,
        **conversation.get("extra", {}),
    )
