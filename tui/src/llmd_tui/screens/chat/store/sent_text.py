"""The text of a message as it is sent to a model."""

from __future__ import annotations

import re

from llmd_tui.screens.chat.store.records import Content


def sent_text(content: Content) -> str:
    """Return the text of a message as it is sent: with its attachments before it."""
    parts = [fenced(one.name, one.text) for one in content.attachments]
    return "\n\n".join([*parts, content.text] if content.text else parts)


def fenced(name: str, text: str) -> str:
    """Return a text as a fenced block with its name, in a fence that the text does not contain."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{name}:\n{fence}\n{text.rstrip(chr(10))}\n{fence}"
