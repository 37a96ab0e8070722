"""Chat templates and fill-in-the-middle support that a GGUF file states."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llmd.api.errors import TemplateError
from llmd.chat.fill_in_middle import form_of
from llmd.chat.tokenizers.gguf.vocabulary import PREFIX
from llmd.models.files import Stamps, stamps
from llmd.models.gguf.gguf_file import read_gguf_metadata
from llmd.models.gguf.source import GgufSource
from llmd.models.model_source import find_source

TEMPLATE = "tokenizer.chat_template"
NAMED: Mapping[str, str] = {
    "rwkv-world": (
        "{% for message in messages %}{{ message.role | capitalize }}: {{ message.content | trim }}\n\n{% endfor %}"
        "{% if add_generation_prompt %}Assistant:{% endif %}"
    ),
}
"""Templates that older files name instead of containing them. Source: ``llama-chat.cpp`` of
github.com/ggml-org/llama.cpp.
"""
DEFAULT = "default"


def gguf_templates(path: Path) -> Mapping[str, str] | None:
    """Return the chat templates of the model at ``path`` by name; None if it is not a GGUF model.

    Raises:
        NotFoundError: there is no such directory or file.
        CheckpointError: the file is damaged, or the directory has several models and one must be chosen.
        TemplateError: a template is not a string.
    """
    file = _find(path)
    return None if file is None else _read_templates(file)


def gguf_fills_in(path: Path) -> bool | None:
    """Return whether the vocabulary has fill-in-the-middle markers; None if the model is not in a GGUF file.

    Raises:
        NotFoundError, CheckpointError: as in `gguf_templates`.
    """
    file = _find(path)
    return None if file is None else _read_fills_in(file)


def _find(path: Path) -> Stamps | None:
    source = find_source(path)
    return stamps([source.config_file]) if isinstance(source, GgufSource) else None


# Cached because model listings call these often, and a header holds the whole vocabulary.


@functools.lru_cache(maxsize=64)
def _read_templates(stated: Stamps) -> Mapping[str, str]:
    file = stated[0].path
    return _templates(read_gguf_metadata(file), file)


@functools.lru_cache(maxsize=64)
def _read_fills_in(stated: Stamps) -> bool:
    tokens = read_gguf_metadata(stated[0].path).get(f"{PREFIX}tokens", [])
    known = frozenset(tokens) if isinstance(tokens, list) else frozenset[str]()
    return form_of(known.__contains__) is not None


def _templates(metadata: Mapping[str, Any], file: Path) -> dict[str, str]:
    named = {
        key.removeprefix(TEMPLATE).removeprefix(".") or DEFAULT: metadata[key]
        for key in metadata
        if key == TEMPLATE or key.startswith(f"{TEMPLATE}.")
    }
    for name, template in named.items():
        if not isinstance(template, str):
            raise TemplateError(
                f"{file}: the chat template {name!r} is a {type(template).__name__}, not a string",
                hint="move the file into its own directory and add a chat_template.jinja there",
            )
    return {name: NAMED.get(template, template) for name, template in named.items()}
