"""Vocabularies of GGUF files become files whose tokenizer splits text in the same way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers

from llmd.api.errors import TokenizerError
from llmd.chat.tokenizers.gguf.gguf_tokenizer import load_gguf_tokenizer
from llmd.chat.tokenizers.gguf.tokenizer_files import tokenizer_files
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.chat.tokenizers.tokenizer_loader import load_tokenizer
from llmd.models.gguf.gguf_file import read_gguf_metadata
from tests.daemon.chat.tokenizers.gguf.metadata import (
    CONTROL,
    DEFINED,
    FILE,
    bytes_and_merges,
    scored_pieces,
    words,
)
from tests.daemon.chat.tokenizers.gguf.test_escaped_bytes import metadata as rwkv
from tests.golden.samples import VOCABULARIES, named

TEXTS = ("Größe 你好 🦙🏽 \t\r\n\n  ½ 'S 1234567 Hello  World", " ab  ba", "ab<br>ba", "")
LARGEST = pytest.param("gemma-4", marks=pytest.mark.exhaustive)
REAL = ("llama-bpe", "llama-spm", "phi-3", LARGEST)


def read_again(metadata: dict[str, Any], folder: Path) -> Tokenizer:
    for name, content in tokenizer_files(metadata, FILE).items():
        (folder / name).write_bytes(content)
    return load_tokenizer(folder)


def check_alike(found: Tokenizer, expected: Tokenizer) -> None:
    for text in TEXTS:
        for parse in (True, False):
            ids = found.encode(text, parse_special=parse)
            assert ids == expected.encode(text, parse_special=parse), text
            assert found.decode(ids) == expected.decode(ids)
    for field in ("size", "bos_id", "prefix_ids", "suffix_ids", "specials", "strips_leading_space"):
        assert getattr(found.vocabulary, field) == getattr(expected.vocabulary, field), field


@pytest.mark.parametrize(
    "metadata",
    [
        bytes_and_merges("a b", "b a", "ab ba"),
        bytes_and_merges("a b", pre="qwen2", more={"<br>": DEFINED, "<x>": CONTROL}),
        bytes_and_merges("a b", pre="llama-bpe", add_bos_token=True, add_eos_token=True),
        scored_pieces("▁a", "ab", "▁", "a", "b"),
        scored_pieces("▁a", "ab", "▁", "a", "b", add_space_prefix=False, more={"<br>": DEFINED}),
        scored_pieces(
            "▁a", "▁", "a", model="t5", add_eos_token=True, unknown_token_id=0, bos_token_id=1, eos_token_id=2
        ),
    ],
    ids=("bytes", "added", "around", "pieces", "bare pieces", "unigrams"),
)
def test_files_give_the_tokenizer_of_the_keys(metadata: dict[str, Any], tmp_path: Path) -> None:
    check_alike(read_again(metadata, tmp_path), load_gguf_tokenizer(metadata, FILE))


def test_a_vocabulary_of_rwkv_becomes_lines_of_tokens(tmp_path: Path) -> None:
    found, expected = read_again(rwkv(), tmp_path), load_gguf_tokenizer(rwkv(), FILE)
    for text in (*TEXTS, "there is\n\nthe User's \\ 'x'"):
        assert found.encode(text) == expected.encode(text)
    assert (found.bos_id, found.eos_ids) == (0, (0,))
    assert found.vocabulary.specials == expected.vocabulary.specials


@pytest.mark.parametrize("name", REAL)
def test_files_of_real_vocabularies_give_their_tokenizer(name: str, tmp_path: Path) -> None:
    path = named(VOCABULARIES / f"ggml-vocab-{name}.gguf")
    metadata = dict(read_gguf_metadata(path))
    check_alike(read_again(metadata, tmp_path), load_gguf_tokenizer(metadata, str(path)))


def test_the_library_by_itself_writes_bos_and_decodes(tmp_path: Path) -> None:
    metadata = bytes_and_merges("a b", add_bos_token=True)
    (tmp_path / "tokenizer.json").write_bytes(tokenizer_files(metadata, FILE)["tokenizer.json"])
    alone = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    ids = alone.encode("ab é").ids
    assert alone.id_to_token(ids[0]) == "<s>"
    assert alone.decode(ids) == "ab é"
    assert alone.encode("a", "b").tokens == ["<s>", "a", "<s>", "b"]


def test_special_tokens_are_named() -> None:
    metadata = bytes_and_merges("a b", unknown_token_id=3, padding_token_id=4)
    config = json.loads(tokenizer_files(metadata, FILE)["tokenizer_config.json"])
    assert (config["bos_token"], config["eos_token"]) == ("<s>", "</s>")
    tokens = metadata["tokenizer.ggml.tokens"]
    assert (config["unk_token"], config["pad_token"]) == (tokens[3], tokens[4])


def test_word_pieces_are_refused() -> None:
    with pytest.raises(TokenizerError, match="'bert', which cannot be written as files"):
        tokenizer_files(words("▁a"), FILE)
