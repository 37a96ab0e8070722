"""Capabilities of a model, read from its small files: listing models loads no weights."""

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

# Words that appear in templates of reasoning models; each is used by some model families.
_REASONING = ("<think>", "enable_thinking", "reasoning_content", "reasoning_effort", "[THINK]")


class Capabilities(Struct, frozen=True):
    """What a model can do."""

    chat: bool = False
    """It has a chat template, so it also takes tools."""
    thinking: bool = False
    """Its template supports reasoning."""
    insert: bool = False
    """It can fill in the text between a prefix and a suffix."""
    embedding: bool = False
    """It embeds texts and does nothing else."""
    ranking: bool = False
    """It ranks documents and does nothing else."""


def read_capabilities(directory: Path) -> Capabilities:
    """Return the capabilities of a model directory; none if its files cannot be read."""
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
    """Return the capabilities under Ollama's names, plus ``rerank``, which Ollama does not have.

    Every chat model has ``tools``: a grammar constrains its calls.
    """
    if capabilities.embedding:
        return ["embedding"]
    if capabilities.ranking:
        return ["rerank"]
    found = {"tools": capabilities.chat, "insert": capabilities.insert, "thinking": capabilities.thinking}
    return ["completion", *(name for name, able in found.items() if able)]


def knows_reasoning(template: str) -> bool:
    """Return whether a chat template writes, reads or switches reasoning."""
    return any(word in template for word in _REASONING)
