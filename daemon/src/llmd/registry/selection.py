"""Select the files of a repository that a model needs. Other weights, pickles and code are not downloaded."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Collection, Container, Iterable

from llmd.api.errors import UnsupportedModelError
from llmd.models.meta.params_file import PARAMS_FILE
from llmd.models.meta.weight_files import PIECE_NAME
from llmd.models.meta.weight_files import STEM as META_STEM
from llmd.models.shards import INDEX_FILE, SINGLE_FILE, STEM, shard_files

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
    "rwkv_vocab_*.txt",
    "tiktoken.model",
    "sentence_bert_config.json",
)
TEMPLATES = ("chat_template.jinja", "chat_template.json", "additional_chat_templates/*.jinja")
LICENCES = ("LICENSE*", "LICENCE*", "NOTICE*")
ALLOWED = (*CONFIGS, *TOKENIZERS, *TEMPLATES, *LICENCES)

MISTRAL_TOKENIZERS = ("tekken.json", "tokenizer.model.v*")
COMMON_TOKENIZERS = frozenset({"tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt"})
"""If one of these exists, Mistral's own tokenizer is not needed."""


def small_files(paths: Iterable[str]) -> list[str]:
    """Return everything but the weights: configuration, tokenizer, templates, licence."""
    known = list(paths)
    allowed = list(ALLOWED)
    if not COMMON_TOKENIZERS.intersection(known):
        allowed += MISTRAL_TOKENIZERS
    if not any(name in known for name in shard_files(STEM)):
        allowed.append(PARAMS_FILE)
    return [path for path in known if any(_matches(path, pattern) for pattern in allowed)]


def _matches(path: str, pattern: str) -> bool:
    """Whether a path matches a pattern in which ``*`` does not match ``/``."""
    return path.count("/") == pattern.count("/") and fnmatch.fnmatchcase(path, pattern)


def licences(paths: Iterable[str]) -> list[str]:
    """Return the licence files: all that a GGUF file, which contains everything else, needs next to it."""
    return [path for path in paths if any(_matches(path, pattern) for pattern in LICENCES)]


def has_weights(paths: Iterable[str]) -> bool:
    """Whether there are safetensors that llmd can load, in Hugging Face's or Meta's layout."""
    known = set(paths)
    return any(name in known for stem in _stems(known) for name in shard_files(stem)) or bool(_pieces(known))


def weight_index(paths: Iterable[str]) -> str | None:
    """Return the index that lists the weight files; None if their names are known without one.

    Raises:
        UnsupportedModelError: there are no weights that llmd can load; the message names others that exist.
    """
    known = set(paths)
    for stem in _stems(known):
        single, index = shard_files(stem)
        if single in known:
            return None
        if index in known:
            return index
    if _pieces(known):
        return None
    others = sorted(
        path
        for path in known
        if path.endswith((".bin", ".pt", ".pth", ".onnx", ".safetensors", ".h5", ".msgpack"))
    )
    found = f"only {', '.join(others[:3])}" if others else "no weights at all"
    raise UnsupportedModelError(
        f"the repository has neither {SINGLE_FILE} nor {INDEX_FILE} nor a GGUF file, {found}",
        hint="pull a repository of the model with safetensors or GGUF files; pickled weights could run code "
        "and are never loaded",
    )


def weight_files(paths: Iterable[str], index: bytes | None) -> list[str]:
    """Return the weight files: those in the index, else the single file, else the pieces of Meta's layout.

    Raises:
        UnsupportedModelError: the index lists no usable files.
    """
    if index is None:
        known = set(paths)
        singles = [shard_files(stem)[0] for stem in _stems(known)]
        return [single for single in singles if single in known][:1] or _pieces(known)
    try:
        names = set(json.loads(index)["weight_map"].values())
    except (ValueError, KeyError, TypeError, AttributeError):
        names = set()
    if not names or not all(
        isinstance(name, str) and name.endswith(".safetensors") and "/" not in name for name in names
    ):
        raise UnsupportedModelError(
            "the index of the weights lists no safetensors files",
            hint="the repository is damaged: pull another one of this model",
        )
    return sorted(names)


def _stems(known: Container[str]) -> list[str]:
    """Return the stems of weight file names, preferred first. Meta's layout needs its configuration file."""
    return [STEM, META_STEM] if PARAMS_FILE in known else [STEM]


def _pieces(known: Collection[str]) -> list[str]:
    return sorted(filter(PIECE_NAME.fullmatch, known)) if PARAMS_FILE in known else []
