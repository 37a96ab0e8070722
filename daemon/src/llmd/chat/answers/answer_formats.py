"""Which parsers read a model's answers: chosen by its chat template, or by name."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct

from llmd.api.errors import ConfigError
from llmd.api.parsing import CallFormat, ReasoningMarks
from llmd.api.plugins import Parser
from llmd.chat.tools.call_ids import demands_short_ids

logger = logging.getLogger(__name__)

AUTO, NONE = "auto", "none"
# What models write whose template knows no tools: the prompt then tells them how (`llmd.chat.tools.prompt`).
FALLBACK = "hermes"


class ParserChoice(Struct, frozen=True):
    """All parsers by name, and which are to be used: ``auto`` by the template, ``none``, or one by its name."""

    parsers: Mapping[str, Parser] = {}
    calls: str = AUTO
    reasoning: str = AUTO


Reads = Literal["calls", "reasoning"]
ToolsGo = Literal["template", "system", "text"]
# A use of the variable, rather than of a member or key of that name.
_USES_TOOLS = re.compile(r"""(?<![\w.'"\[])tools\b""")
_KEY_OF_TOOLS = re.compile(r"""\[['"]tools['"]\]""")


class AnswerFormats(Struct, frozen=True):
    """How a model writes calls and reasoning.

    ``tools_go`` says how it is shown tools: its template writes the variable ``tools``, or the key of that name of the
    system message; or it knows none, and they are text of the system message (`llmd.chat.tools.prompt`). With
    ``short_ids`` it demands ids of calls of its own kind (`llmd.chat.tools.call_ids`).
    """

    calls: CallFormat | None = None
    reasoning: ReasoningMarks | None = None
    tools_go: ToolsGo = "template"
    short_ids: bool = False


def choose_formats(choice: ParserChoice, templates: Iterable[str]) -> AnswerFormats:
    """The formats of a model with these templates.

    Raises:
        ConfigError: a parser was asked for by a name that none has.
    """
    source = "\n".join(templates)
    calls = _chosen(choice, "calls", choice.calls, source)
    if calls is None and choice.calls == AUTO:
        calls = _loaded(choice.parsers.get(FALLBACK))
    reasoning = _chosen(choice, "reasoning", choice.reasoning, source)
    assert calls is None or isinstance(calls, CallFormat)
    assert reasoning is None or isinstance(reasoning, ReasoningMarks)
    return AnswerFormats(calls, reasoning, _tools_go(source), demands_short_ids(source))


def _tools_go(source: str) -> ToolsGo:
    if _USES_TOOLS.search(source):
        return "template"
    return "system" if _KEY_OF_TOOLS.search(source) else "text"


def _chosen(
    choice: ParserChoice, reads: Reads, asked: str, source: str
) -> CallFormat | ReasoningMarks | None:
    parsers = _that_read(reads, choice.parsers)
    if asked == NONE:
        return None
    if asked == AUTO:
        scores = {name: _score(parser, source) for name, parser in parsers.items()}
        best = max(scores, key=lambda name: scores[name], default=None)
        return _loaded(parsers[best]) if best is not None and scores[best] > 0 else None
    check_parser(choice.parsers, reads, asked, "tool_parser" if reads == "calls" else "reasoning_parser")
    return _loaded(parsers[asked])


def check_parser(parsers: Mapping[str, Parser], reads: Reads, asked: str, setting: str) -> None:
    """Refuse a name that no parser has; ``setting`` is what the message calls the place where it was asked for.

    Raises:
        ConfigError: there is none of that name; the message has those that there are.
    """
    known = _that_read(reads, parsers)
    if asked not in (AUTO, NONE, *known):
        raise ConfigError(
            f"{setting} is {asked}, and there are {', '.join(known) or 'none'}",
            hint=f"set it to one of them, {AUTO} or {NONE}",
        )


def _that_read(reads: Reads, parsers: Mapping[str, Parser]) -> dict[str, Parser]:
    return {name: parser for name, parser in sorted(parsers.items()) if parser.reads == reads}


def _score(parser: Parser, source: str) -> int:
    try:
        return parser.matches(source)
    except Exception:  # the door of plugins
        logger.warning("parser_failed", exc_info=True, extra={"parser": parser.name})
        return 0


def _loaded(parser: Parser | None) -> CallFormat | ReasoningMarks | None:
    """What a parser gives; one that fails is left out, and the model's answers are then text."""
    if parser is None:
        return None
    try:
        loaded = parser.load()
    except Exception:  # the door of plugins
        logger.warning("parser_failed", exc_info=True, extra={"parser": parser.name})
        return None
    wanted = CallFormat if parser.reads == "calls" else ReasoningMarks
    if not isinstance(loaded, wanted):
        logger.warning(
            "parser_failed", extra={"parser": parser.name, "reason": f"it gave no {wanted.__name__}"}
        )
        return None
    return loaded
