"""The sandbox in which chat templates run, with the names and filters that they expect.

Set up as documented for transformers' ``apply_chat_template``: trimmed blocks, loop controls, ``tojson``
without escapes of non-ASCII text, ``raise_exception``, ``strftime_now`` and the ``generation`` block.
"""

from __future__ import annotations

import json
from datetime import datetime
from functools import lru_cache
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from llmd.chat.templates.render_messages import RenderJob


class RefusedByTemplateError(Exception):
    """The template called ``raise_exception``."""


class GenerationBlock(Extension):
    """``{% generation %}`` marks training targets; in a prompt it is only a block with its own scope."""

    tags = {"generation"}  # noqa: RUF012 — jinja2 requires a plain set on the class

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


class TemplateSandbox:
    """Compiles and renders chat templates; compiled templates are cached."""

    def __init__(self) -> None:
        self._environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[GenerationBlock, loopcontrols]
        )
        self._environment.filters["tojson"] = _to_json
        self._environment.globals["raise_exception"] = _raise_exception
        self._compiled = lru_cache(maxsize=8)(self._compile)

    def render(self, job: RenderJob) -> str:
        """Render a template.

        Raises:
            jinja2.TemplateSyntaxError: the template does not parse.
            jinja2.sandbox.SecurityError: it accesses what the sandbox forbids.
            RefusedByTemplateError: it rejects the conversation.
            Exception: anything that its expressions raise.
        """
        template, wants_parts = self._compiled(job.template)
        now = datetime.fromisoformat(job.now)
        variables = dict(job.variables)
        if wants_parts:
            variables["messages"] = [_in_parts(message) for message in variables["messages"]]
        return template.render(variables, strftime_now=now.strftime)

    def _compile(self, source: str) -> tuple[jinja2.Template, bool]:
        wants_parts = _iterates_over_content(self._environment.parse(source))
        return self._environment.from_string(source), wants_parts


def _to_json(
    value: Any,
    ensure_ascii: bool = False,  # noqa: FBT001, FBT002 — templates pass it by position too
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,  # noqa: FBT001, FBT002
) -> str:
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _raise_exception(message: object) -> NoReturn:
    raise RefusedByTemplateError(str(message))


def _iterates_over_content(tree: nodes.Template) -> bool:
    """Return whether the template needs content as a list: it loops over it and never tests its type."""
    asks = any(test.name in {"string", "iterable", "sequence"} for test in tree.find_all(nodes.Test))
    return not asks and any(_is_content(loop.iter) for loop in tree.find_all(nodes.For))


def _is_content(node: nodes.Node) -> bool:
    if isinstance(node, nodes.Getattr):
        return node.attr == "content"
    return (
        isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const) and node.arg.value == "content"
    )


def _in_parts(message: dict[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    return (
        {**message, "content": [{"type": "text", "text": content}]} if isinstance(content, str) else message
    )
