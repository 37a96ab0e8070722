"""What a chat shows of its model and its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from llmd.cli.answer_writer import CONTROLS
from llmd.cli.conversation import Conversation
from llmd.cli.output import aligned

# Parts of what the daemon tells of a model that are texts of their own, by Ollama's names.
TEXTS = ("parameters", "template", "license", "modelfile")
TOPICS = ("info", "system", *TEXTS)
THINKING = {None: "as the model's makers chose", True: "on", False: "off"}


def described(conversation: Conversation, model: Mapping[str, Any], topic: str = "") -> str:
    """One topic, or the model and the settings at a glance. ``model`` is what `ModelAccess.describe` returns."""
    if topic in TEXTS:
        return _shown(model[topic]) or f"{conversation.model} has no {topic}"
    if topic == "system":
        return conversation.system or _shown(model["system"]) or "there is no system prompt"
    if topic in {"", "info"}:
        return aligned(list(_info(conversation, model)))
    return f"there is no {topic} to show; there are {', '.join(TOPICS)}"


def _info(conversation: Conversation, model: Mapping[str, Any]) -> Iterator[list[str]]:
    details, capabilities = model["details"], model["capabilities"]
    yield ["model", conversation.model]
    yield ["architecture", str(details["family"])]
    yield ["parameters", str(details["parameter_size"])]
    yield ["weights", f"{details['quantization_level']} ({details['format']})"]
    yield ["context", _context(details["context_length"], model["window"])]
    yield ["capabilities", ", ".join(capabilities)]
    yield ["system prompt", (conversation.system or _shown(model["system"]) or "none").replace("\n", " ")]
    yield from ([name, str(value)] for name, value in conversation.settings.items())
    if "thinking" in capabilities:
        yield ["thinking", THINKING[conversation.thinking]]
    yield ["turns", str(len(conversation.turns))]


def _context(stated: int | None, window: int | None) -> str:
    """The window in tokens, and what the model was made for where that is more."""
    if window and stated and window < stated:
        return f"{window} tokens of {stated} that the model was made for"
    return f"{window or stated or 'an unknown number of'} tokens"


def _shown(text: str) -> str:
    """What a model's files say does not steer the terminal."""
    return text.translate(CONTROLS).rstrip()
