"""Adapt messages to a model's template: where tools go, and what call ids look like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llmd.chat.answers.answer_formats import AnswerFormats
from llmd.chat.templates.template_messages import prepare_messages
from llmd.chat.templates.text_parts import Separator, line_break
from llmd.chat.tools.call_ids import with_call_ids
from llmd.chat.tools.prompt import tell_tools, tools_in_system_message


def adapted_messages(
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]],
    formats: AnswerFormats,
    separator: Separator = line_break,
) -> Sequence[Mapping[str, Any]]:
    """Return the messages of a request, changed only if the template needs it.

    Raises:
        RequestError: a message is malformed.
    """
    if formats.tools_go == "template" and formats.call_ids == "any":
        return messages
    prepared = prepare_messages(messages, keep_developer=True, separator=separator)
    prepared = with_call_ids(prepared, formats.call_ids)
    match formats.tools_go:
        case "template":
            return prepared
        case "system":
            return tools_in_system_message(prepared, tools)
        case "text":
            return tell_tools(prepared, tools, formats.calls)
