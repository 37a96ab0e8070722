"""Load the tokenizer of a GGUF file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from llmd.chat.tokenizers.gguf.byte_pairs import load_byte_pairs
from llmd.chat.tokenizers.gguf.escaped_bytes import load_escaped_bytes
from llmd.chat.tokenizers.gguf.pieces import load_pieces
from llmd.chat.tokenizers.gguf.vocabulary import GgufVocabulary, read_vocabulary
from llmd.chat.tokenizers.gguf.word_pieces import load_word_pieces
from llmd.chat.tokenizers.tokenizer import Tokenizer

_LOADERS: Mapping[str, Callable[[GgufVocabulary], Tokenizer]] = {
    "gpt2": load_byte_pairs,
    "gemma4": load_byte_pairs,
    "llama": load_pieces,
    "t5": load_pieces,
    "bert": load_word_pieces,
    "rwkv": load_escaped_bytes,
}
"""Loaders by ``tokenizer.ggml.model``."""


def load_gguf_tokenizer(metadata: Mapping[str, Any], file: str) -> Tokenizer:
    """Load the tokenizer in the metadata of ``file``.

    Raises:
        TokenizerError: it is missing, damaged or of an unknown kind.
        CheckpointError: a string of the metadata is not valid text.
    """
    stated = read_vocabulary(metadata, file)
    if stated.model not in _LOADERS:
        raise stated.error(
            f"tokenizer.ggml.model is {stated.model!r}; supported are {', '.join(_LOADERS)}",
            "use a model with one of these tokenizers, or upgrade llmd",
        )
    return _LOADERS[stated.model](stated)
