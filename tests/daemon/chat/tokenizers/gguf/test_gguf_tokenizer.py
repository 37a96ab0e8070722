"""The kind of a vocabulary says what runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import TokenizerError
from llmd.chat.tokenizers.gguf.gguf_tokenizer import load_gguf_tokenizer
from llmd.models.gguf.gguf_file import read_gguf_metadata
from tests.corrupt.gguf_bytes import STRING, gguf, key, listed, text
from tests.daemon.chat.tokenizers.gguf.metadata import FILE, bytes_and_merges, scored_pieces, stated, words


@pytest.mark.parametrize("metadata", [bytes_and_merges("a b"), scored_pieces("▁"), words("▁a", "▁b")])
def test_each_kind_is_run(metadata: dict[str, Any]) -> None:
    tokenizer = load_gguf_tokenizer(metadata, FILE)
    assert tokenizer.decode(tokenizer.encode("a b", add_special=False)).strip() == "a b"


def test_a_kind_that_is_not_known_is_refused_with_those_that_are() -> None:
    with pytest.raises(TokenizerError, match="'rwkv'; known are gpt2, gemma4, llama, t5, bert"):
        load_gguf_tokenizer(stated("rwkv", {"a": 1}), FILE)  # type: ignore[dict-item]


def test_a_file_without_a_tokenizer_is_refused() -> None:
    with pytest.raises(TokenizerError, match=r"tokenizer\.ggml\.tokens"):
        load_gguf_tokenizer({}, FILE)


def test_text_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    model = key("tokenizer.ggml.model", STRING, text("gpt2"))
    path.write_bytes(gguf([model, listed("tokenizer.ggml.tokens", STRING, [text(b"\xff")])]))
    with pytest.raises(TokenizerError, match="UTF-8"):
        load_gguf_tokenizer(read_gguf_metadata(path), str(path))
