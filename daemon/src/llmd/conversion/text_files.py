"""The tokenizer, template and generation files of a model: existing ones, or made from a GGUF file's keys."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llmd.chat.generation_defaults import GGUF_KEYS
from llmd.chat.gguf_text import DEFAULT, gguf_templates
from llmd.chat.tokenizers.gguf.tokenizer_files import tokenizer_files
from llmd.chat.tokenizers.gguf.vocabulary import PREFIX
from llmd.models.files import is_named
from llmd.models.gguf.model_metadata import gguf_metadata
from llmd.models.hugging_face import CONFIG_FILE
from llmd.models.meta.params_file import PARAMS_FILE
from llmd.registry.selection import MISTRAL_TOKENIZERS, TOKENIZERS, small_files

TOKENIZER_CONFIG, GENERATION_CONFIG = "tokenizer_config.json", "generation_config.json"
OF_WEIGHTS = frozenset({CONFIG_FILE, PARAMS_FILE})


def has_tokenizer(path: Path) -> bool:
    """Whether the model in ``path`` has a tokenizer, readable or not."""
    metadata = gguf_metadata(path)
    if metadata is not None:
        return f"{PREFIX}tokens" in metadata
    return any(is_named(file) for name in (*TOKENIZERS, *MISTRAL_TOKENIZERS) for file in path.glob(name))


def text_files(path: Path) -> dict[str, bytes]:
    """Return the contents of a model's files by name, without configuration and weights.

    Raises:
        TokenizerError: the tokenizer of a GGUF file cannot be written as files.
    """
    metadata = gguf_metadata(path)
    if metadata is not None:
        return {**_tokenizer(path, metadata), **_generation(metadata)}
    names = [file.relative_to(path).as_posix() for file in sorted(path.rglob("*")) if file.is_file()]
    return {name: (path / name).read_bytes() for name in small_files(names) if name not in OF_WEIGHTS}


def _tokenizer(path: Path, metadata: Mapping[str, Any]) -> dict[str, bytes]:
    if not has_tokenizer(path):
        return {}
    files = tokenizer_files(metadata, str(path))
    templates = gguf_templates(path)
    if not templates:
        return files
    listed = [{"name": name, "template": template} for name, template in templates.items()]
    config = json.loads(files[TOKENIZER_CONFIG])
    config["chat_template"] = templates[DEFAULT] if list(templates) == [DEFAULT] else listed
    return {**files, TOKENIZER_CONFIG: _json(config)}


def _generation(metadata: Mapping[str, Any]) -> dict[str, bytes]:
    stated = {name: metadata[key] for name, key in GGUF_KEYS.items() if key in metadata}
    if stated.get("temperature") == 0:
        stated = {"do_sample": False}
    return {GENERATION_CONFIG: _json(stated)} if stated else {}


def _json(values: dict[str, Any]) -> bytes:
    return json.dumps(values, indent=2, ensure_ascii=False).encode()
