"""Make GGUF keys for the tokenizer, chat templates, sampling defaults, and tokens that end generation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from llmd.chat.answers.stop_tokens import stop_token_ids
from llmd.chat.generation_defaults import GGUF_KEYS, read_generation_defaults
from llmd.chat.gguf_text import DEFAULT, TEMPLATE
from llmd.chat.templates.template_files import template_sources
from llmd.chat.tokenizers.gguf.pre_tokenizers import OWN
from llmd.chat.tokenizers.gguf.tokenizer_files import ROLES
from llmd.chat.tokenizers.gguf.vocabulary import PREFIX
from llmd.chat.tokenizers.gguf.vocabulary_keys import vocabulary_keys
from llmd.chat.tokenizers.tokenizer import Tokenizer, check_vocab_size
from llmd.chat.tokenizers.tokenizer_config import read_tokenizer_config
from llmd.chat.tokenizers.tokenizer_loader import load_tokenizer
from llmd.conversion.text_files import has_tokenizer
from llmd.models.gguf.config import EOS_NAMES
from llmd.models.gguf.model_metadata import gguf_metadata

NAMES = f"{TEMPLATE}s"
OF_TEXT = ("tokenizer.", "general.sampling.")


class TextKeys(msgspec.Struct, frozen=True):
    """Keys of a GGUF file."""

    keys: Mapping[str, Any]
    notices: tuple[str, ...] = ()
    """Sentences about what the keys cannot express."""


def text_keys(path: Path, vocab_size: int) -> TextKeys:
    """Return the keys for the model in ``path``, which has ``vocab_size`` embeddings.

    Raises:
        TokenizerError: a GGUF file cannot hold the tokenizer, or it has more tokens than the model.
        TemplateError: a template cannot be read.
    """
    metadata = gguf_metadata(path)
    if metadata is not None:
        return TextKeys({key: metadata[key] for key in metadata if key.startswith(OF_TEXT)})
    if not has_tokenizer(path):
        return TextKeys({}, ("the model has no tokenizer, so the GGUF file has none either",))
    tokenizer = load_tokenizer(path)
    check_vocab_size(tokenizer, vocab_size)
    ends = _ends(path, tokenizer)
    keys = vocabulary_keys(tokenizer, vocab_size) | _roles(path, tokenizer)
    keys |= {f"{PREFIX}{role}_token_id": end for role, end in zip(EOS_NAMES, ends, strict=False)}
    return TextKeys({**keys, **_templates(path), **_sampling(path)}, tuple(_notices(keys, ends)))


def _notices(keys: Mapping[str, Any], ends: Sequence[int]) -> Iterator[str]:
    if more := list(ends[len(EOS_NAMES) :]):
        yield f"a GGUF file can name only {len(EOS_NAMES)} tokens that end answers: {more} are left out"
    if keys.get(f"{PREFIX}pre") == OWN:
        yield "only llmd can read the file: llama.cpp does not know how the built-in model's tokenizer splits text"


def _ends(path: Path, tokenizer: Tokenizer) -> list[int]:
    """Return the tokens that end an answer, the tokenizer's own first."""
    return list(dict.fromkeys((*tokenizer.eos_ids, *stop_token_ids(path, tokenizer))))


def _roles(path: Path, tokenizer: Tokenizer) -> dict[str, Any]:
    named = read_tokenizer_config(path)
    found = {key: tokenizer.token_id(named.name(role) or "") for role, key in ROLES.items()}
    return {f"{PREFIX}{key}_token_id": place for key, place in found.items() if place is not None}


def _templates(path: Path) -> dict[str, Any]:
    sources = template_sources(path)
    others = [name for name in sources if name != DEFAULT]
    keys: dict[str, Any] = {f"{TEMPLATE}.{name}": sources[name] for name in others}
    if DEFAULT in sources:
        keys[TEMPLATE] = sources[DEFAULT]
    return {**keys, NAMES: others} if others else keys


def _sampling(path: Path) -> dict[str, Any]:
    defaults = read_generation_defaults(path)
    stated = {key: getattr(defaults, name) for name, key in GGUF_KEYS.items()}
    return {key: value for key, value in stated.items() if value is not None}
