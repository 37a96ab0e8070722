"""What ``/show`` shows of a chat's model and settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from llmd.cli.answer_writer import CONTROLS
from llmd.cli.conversation import Conversation
from llmd.cli.output import aligned

# Text fields of the model description, by Ollama's names.
TEXTS = ("parameters", "template", "license", "modelfile")
TOPICS = ("info", "system", *TEXTS)
THINKING = {None: "the model's default", True: "on", False: "off"}


def described(conversation: Conversation, model: Mapping[str, Any], topic: str = "") -> str:
    """Return one topic, or an overview. ``model`` is what `ModelAccess.describe` returns."""
    if topic in TEXTS:
        return _shown(model[topic]) or f"{conversation.model} has no {topic}"
    if topic == "system":
        return conversation.system or _shown(model["system"]) or "there is no system prompt"
    if topic in {"", "info"}:
        return aligned(list(_info(conversation, model)))
    return f"there is no topic {topic}; the topics are {', '.join(TOPICS)}"


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
    """Format the window in tokens, with the model's own context length if that is larger."""
    if window and stated and window < stated:
        return f"{window} tokens; the model supports {stated}"
    return f"{window or stated or 'an unknown number of'} tokens"


def _shown(text: str) -> str:
    """Remove control characters: a model's files must not control the terminal."""
    return text.translate(CONTROLS).rstrip()
