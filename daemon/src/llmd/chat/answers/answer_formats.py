"""Choose the parsers for a model's answers, by its chat template or by name."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct

from llmd.api.errors import ConfigError
from llmd.api.parsing import CallFormat, ReasoningMarks
from llmd.api.plugins import Parser
from llmd.chat.answers.guarded_calls import OnFailure, guarded
from llmd.chat.tools.call_ids import CallIds, taken_ids

logger = logging.getLogger(__name__)

AUTO, NONE = "auto", "none"
# For templates that do not support tools: the prompt then asks for this format (`llmd.chat.tools.prompt`).
FALLBACK = "hermes"


class ParserChoice(Struct, frozen=True):
    """The available parsers and the configured ones: a name, ``none``, or ``auto`` (by template)."""

    parsers: Mapping[str, Parser] = {}
    """All parsers by name."""
    calls: str = AUTO
    reasoning: str = AUTO
    on_failure: OnFailure = lambda _parser, _error: None
    """Called when a parser of calls raises an error while it reads an answer."""


Reads = Literal["calls", "reasoning"]
ToolsGo = Literal["template", "system", "text"]
# The variable ``tools``, not a member or key of that name.
_USES_TOOLS = re.compile(r"""(?<![\w.'"\[])tools\b""")
_KEY_OF_TOOLS = re.compile(r"""\[['"]tools['"]\]""")


class AnswerFormats(Struct, frozen=True):
    """How a model writes calls and reasoning."""

    calls: CallFormat | None = None
    reasoning: ReasoningMarks | None = None
    tools_go: ToolsGo = "template"
    """Where tools are passed: in the template variable ``tools`` (``template``) or the ``tools`` key of the
    system message (``system``); or, if the template reads neither, as text in the system message
    (``text``, `llmd.chat.tools.prompt`).
    """
    call_ids: CallIds = "any"
    """Which ids of calls the template takes."""


def choose_formats(choice: ParserChoice, templates: Iterable[str]) -> AnswerFormats:
    """Choose the formats of a model with these templates.

    Raises:
        ConfigError: the configured parser does not exist.
    """
    source = "\n".join(templates)
    calls = _chosen(choice, "calls", choice.calls, source)
    if calls is None and choice.calls == AUTO:
        calls = _loaded(choice.parsers.get(FALLBACK), choice.on_failure)
    reasoning = _chosen(choice, "reasoning", choice.reasoning, source)
    assert calls is None or isinstance(calls, CallFormat)
    assert reasoning is None or isinstance(reasoning, ReasoningMarks)
    return AnswerFormats(calls, reasoning, _tools_go(source), taken_ids(source))


def _tools_go(source: str) -> ToolsGo:
    if _USES_TOOLS.search(source):
        return "template"
    return "system" if _KEY_OF_TOOLS.search(source) else "text"


def _chosen(
    choice: ParserChoice, reads: Reads, asked: str, source: str
) -> CallFormat | ReasoningMarks | None:
    parsers = _parsers_of(reads, choice.parsers)
    if asked == NONE:
        return None
    if asked == AUTO:
        scores = {name: _score(parser, source) for name, parser in parsers.items()}
        best = max(scores, key=lambda name: scores[name], default=None)
        found = parsers[best] if best is not None and scores[best] > 0 else None
        return _loaded(found, choice.on_failure)
    check_parser(choice.parsers, reads, asked, "tool_parser" if reads == "calls" else "reasoning_parser")
    return _loaded(parsers[asked], choice.on_failure)


def check_parser(parsers: Mapping[str, Parser], reads: Reads, asked: str, setting: str) -> None:
    """Check that a parser named ``asked`` exists. ``setting`` names the setting in the error message.

    Raises:
        ConfigError: it does not exist; the message lists those that do.
    """
    known = _parsers_of(reads, parsers)
    if asked not in (AUTO, NONE, *known):
        raise ConfigError(
            f"{setting} is {asked}, but the only parsers are: {', '.join(known) or 'none'}",
            hint=f"set it to one of them, {AUTO} or {NONE}",
        )


def _parsers_of(reads: Reads, parsers: Mapping[str, Parser]) -> dict[str, Parser]:
    return {name: parser for name, parser in sorted(parsers.items()) if parser.reads == reads}


def _score(parser: Parser, source: str) -> int:
    try:
        return parser.matches(source)
    except Exception:  # a plugin may raise anything
        logger.warning("parser_failed", exc_info=True, extra={"parser": parser.name})
        return 0


def _loaded(parser: Parser | None, on_failure: OnFailure) -> CallFormat | ReasoningMarks | None:
    """Load a parser. None if it fails: answers are then plain text."""
    if parser is None:
        return None
    try:
        loaded = parser.load()
    except Exception:  # a plugin may raise anything
        logger.warning("parser_failed", exc_info=True, extra={"parser": parser.name})
        return None
    wanted = CallFormat if parser.reads == "calls" else ReasoningMarks
    if not isinstance(loaded, wanted):
        logger.warning(
            "parser_failed",
            extra={"parser": parser.name, "reason": f"load() did not return a {wanted.__name__}"},
        )
        return None
    return guarded(loaded, parser.name, on_failure) if isinstance(loaded, CallFormat) else loaded
