"""What a GGUF file says of the text side of its model, beside the tokenizer."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from llmd.api.errors import CheckpointError, TemplateError
from llmd.chat.fill_in_middle import form_of
from llmd.chat.tokenizers.gguf.vocabulary import PREFIX
from llmd.models.gguf.gguf_file import read_gguf_metadata
from llmd.models.gguf.source import GgufSource
from llmd.models.model_source import find_source

TEMPLATE = "tokenizer.chat_template"
DEFAULT = "default"


class GgufText(Struct, frozen=True):
    """``templates`` are chat templates by name; ``fills_in``: the vocabulary has the marks of fill-in-the-middle."""

    templates: Mapping[str, str]
    fills_in: bool


def read_gguf_text(path: Path) -> GgufText | None:
    """The text side of the model of a path, None where it is in no GGUF file.

    Raises:
        NotFoundError: there is no such directory or file.
        CheckpointError: the file is damaged, or one of several has to be chosen.
        TemplateError: a template is no text.
    """
    source = find_source(path)
    if not isinstance(source, GgufSource):
        return None
    file = source.config_file
    try:
        stat = file.stat()
    except OSError as exc:
        raise CheckpointError(
            f"cannot be read: {exc.strerror}", file=str(file), hint="check the path and its permissions"
        ) from exc
    return _read(file, stat.st_size, stat.st_mtime_ns)


@functools.lru_cache(maxsize=64)
def _read(file: Path, size: int, mtime_ns: int) -> GgufText:  # noqa: ARG001 — both tell whether the file is still the same
    """A header holds the whole vocabulary, and listings ask for templates again and again."""
    metadata = read_gguf_metadata(file)
    tokens = metadata.get(f"{PREFIX}tokens", [])
    known = frozenset(tokens) if isinstance(tokens, list) else frozenset[str]()
    return GgufText(_templates(metadata, file), form_of(known.__contains__) is not None)


def _templates(metadata: Mapping[str, Any], file: Path) -> dict[str, str]:
    named = {
        key.removeprefix(TEMPLATE).removeprefix(".") or DEFAULT: metadata[key]
        for key in metadata
        if key == TEMPLATE or key.startswith(f"{TEMPLATE}.")
    }
    for name, template in named.items():
        if not isinstance(template, str):
            raise TemplateError(
                f"{file}: the chat template {name!r} is a {type(template).__name__}, not a text",
                hint="put a chat_template.jinja beside the file into a directory of its own",
            )
    return named
