"""The kind of a vocabulary decides which library runs it."""

from __future__ import annotations

from typing import Any

import pytest

from llmd.api.errors import TokenizerError
from llmd.chat.tokenizers.gguf.gguf_tokenizer import load_gguf_tokenizer
from tests.daemon.chat.tokenizers.gguf.metadata import FILE, bytes_and_merges, scored_pieces, stated, words


@pytest.mark.parametrize("metadata", [bytes_and_merges("a b"), scored_pieces("▁"), words("▁a", "▁b")])
def test_each_kind_is_run(metadata: dict[str, Any]) -> None:
    tokenizer = load_gguf_tokenizer(metadata, FILE)
    assert tokenizer.decode(tokenizer.encode("a b", add_special=False)).strip() == "a b"


def test_a_kind_that_is_not_known_is_refused_with_those_that_are() -> None:
    with pytest.raises(TokenizerError, match="'words'; supported are gpt2, gemma4, llama, t5, bert, rwkv"):
        load_gguf_tokenizer(stated("words", {"a": 1}), FILE)  # type: ignore[dict-item]


def test_a_file_without_a_tokenizer_is_refused() -> None:
    with pytest.raises(TokenizerError, match=r"tokenizer\.ggml\.tokens"):
        load_gguf_tokenizer({}, FILE)
