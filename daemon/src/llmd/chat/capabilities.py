"""What a model can be asked for, told from its small files: nothing is loaded to list it."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from llmd.api.errors import ModelError, NotFoundError
from llmd.chat.fill_in_middle import form_of
from llmd.chat.gguf_text import gguf_fills_in
from llmd.chat.rerankers.reranker_files import ranks
from llmd.chat.templates.template_files import template_sources
from llmd.chat.tokenizers.tokenizer_config import read_tokenizer_config
from llmd.models.config_file import read_config
from llmd.models.embedding_config import embeds
from llmd.models.scoring_config import scores

# Words of templates that know reasoning, each of some family.
_REASONING = ("<think>", "enable_thinking", "reasoning_content", "reasoning_effort", "[THINK]")


class Capabilities(Struct, frozen=True):
    """``chat``: it has a template, and so it can also be given tools. ``thinking``: its template knows reasoning.

    ``insert``: it fills in text before a suffix. ``embedding``: it embeds texts, and does nothing else.
    ``ranking``: it ranks documents, and is asked nothing else.
    """

    chat: bool = False
    thinking: bool = False
    insert: bool = False
    embedding: bool = False
    ranking: bool = False


def read_capabilities(directory: Path) -> Capabilities:
    """The capabilities of a model directory; files that cannot be read promise nothing."""
    try:
        config = read_config(directory)
        if embeds(directory, config):
            return Capabilities(embedding=True)
        if scores(config) or ranks(directory):
            return Capabilities(ranking=True)
        sources = template_sources(directory)
        fills_in = _fills_in(directory)
    except (ModelError, NotFoundError):
        return Capabilities()
    return Capabilities(
        chat=bool(sources),
        thinking=any(map(knows_reasoning, sources.values())),
        insert=fills_in,
    )


def _fills_in(directory: Path) -> bool:
    stated = gguf_fills_in(directory)
    if stated is not None:
        return stated
    added = {token.content for token in read_tokenizer_config(directory).added.values()}
    return form_of(added.__contains__) is not None


def capability_names(capabilities: Capabilities) -> list[str]:
    """The capabilities in Ollama's words, and one for what it has no word for. Every model that chats can be given tools: its
    calls are bound by a grammar.
    """
    if capabilities.embedding:
        return ["embedding"]
    if capabilities.ranking:
        return ["rerank"]
    found = {"tools": capabilities.chat, "insert": capabilities.insert, "thinking": capabilities.thinking}
    return ["completion", *(name for name, able in found.items() if able)]


def knows_reasoning(template: str) -> bool:
    """Whether a chat template writes, reads or switches reasoning."""
    return any(word in template for word in _REASONING)
