"""Which files of a repository a model needs. Everything else stays at the hub: other weights, pickles, code."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterable

from llmd.api.errors import UnsupportedModelError

CONFIGS = (
    "config.json",
    "generation_config.json",
    "modules.json",
    "config_sentence_transformers.json",
    "1_Pooling/config.json",
    "1_LogitScore/config.json",
)
TOKENIZERS = (
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "sentence_bert_config.json",
)
TEMPLATES = ("chat_template.jinja", "chat_template.json", "additional_chat_templates/*.jinja")
LICENCES = ("LICENSE*", "LICENCE*", "NOTICE*")
ALLOWED = (*CONFIGS, *TOKENIZERS, *TEMPLATES, *LICENCES)
SINGLE_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"


def small_files(paths: Iterable[str]) -> list[str]:
    """Everything but the weights: configuration, tokenizer, templates, licence. A pattern never crosses a folder."""
    return [path for path in paths if any(_matches(path, pattern) for pattern in ALLOWED)]


def _matches(path: str, pattern: str) -> bool:
    return path.count("/") == pattern.count("/") and fnmatch.fnmatchcase(path, pattern)


def weight_index(paths: Iterable[str]) -> str | None:
    """The index that must be read to know the weight files; None where there is a single file.

    Raises:
        UnsupportedModelError: there are no weights that llmd loads; the message names those that there are.
    """
    known = set(paths)
    if SINGLE_FILE in known:
        return None
    if INDEX_FILE in known:
        return INDEX_FILE
    others = sorted(
        path
        for path in known
        if path.endswith((".bin", ".pt", ".pth", ".gguf", ".onnx", ".safetensors", ".h5", ".msgpack"))
    )
    found = f"only {', '.join(others[:3])}" if others else "no weights at all"
    raise UnsupportedModelError(
        f"the repository has neither {SINGLE_FILE} nor {INDEX_FILE}, {found}",
        hint="pull the model's repository with safetensors; pickled weights could run code and are never loaded",
    )


def weight_files(index: bytes | None) -> list[str]:
    """The weight files: the single one, or those that an index names.

    Raises:
        UnsupportedModelError: the index cannot be followed.
    """
    if index is None:
        return [SINGLE_FILE]
    try:
        names = set(json.loads(index)["weight_map"].values())
    except (ValueError, KeyError, TypeError, AttributeError):
        names = set()
    if not names or not all(
        isinstance(name, str) and name.endswith(".safetensors") and "/" not in name for name in names
    ):
        raise UnsupportedModelError(
            f"{INDEX_FILE} names no safetensors files", hint="the repository is damaged"
        )
    return sorted(names)
