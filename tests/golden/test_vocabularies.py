"""Fifteen real vocabularies cut text into the tokens that their models were trained with.

Next to each are texts with the ids from the original tokenizer. As in llama.cpp's test of them
(test-tokenizer-0), no special token is added, and special tokens in the text are not parsed.
"""

from __future__ import annotations

import pytest

from llmd.chat.tokenizers.gguf.gguf_tokenizer import load_gguf_tokenizer
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.models.gguf.gguf_file import read_gguf_metadata
from tests.golden.samples import FIX, VOCABULARIES, named

NAMES = sorted(path.name.removesuffix(".inp") for path in VOCABULARIES.glob("*.gguf.inp"))
UNTOLD = sorted({path.name for path in VOCABULARIES.glob("*.gguf")} - set(NAMES))
"""Vocabularies without expected ids."""
SEPARATOR = "\n__ggml_vocab_test__\n"
LOSSY = "ggml-vocab-bert-bge.gguf"
"""WordPiece drops spaces and accents."""
MIXED = "Grüße, 你好, привет नमस्ते 🦙🏽 \t\r\n\n  ½ ﬁ\u200b '\u2019S 1234567 <|im_end|> \ue000\U000e0041"


def tokenizer(name: str) -> Tokenizer:
    path = named(VOCABULARIES / name)
    return load_gguf_tokenizer(read_gguf_metadata(path), str(path))


def expectations(name: str) -> list[tuple[str, list[int]]]:
    """Texts with their ids."""
    content = named(VOCABULARIES / f"{name}.inp").read_bytes().decode()
    texts = content.removesuffix(SEPARATOR).split(SEPARATOR)
    lines = named(VOCABULARIES / f"{name}.out").read_text().splitlines()
    return list(zip(texts, [[int(word) for word in line.split()] for line in lines], strict=True))


def test_fifteen_vocabularies_with_expected_tokens_are_there() -> None:
    assert len(NAMES) == 15, f"{VOCABULARIES} has {len(NAMES)} with expected tokens: {FIX}"


@pytest.mark.parametrize("name", NAMES)
def test_cuts_text_into_the_expected_tokens_and_gives_it_back(name: str) -> None:
    reads, cases = tokenizer(name), expectations(name)
    assert len(cases) >= 46
    for text, ids in cases:
        assert reads.encode(text, add_special=False, parse_special=False) == ids, text
        assert reads.decode(ids) == text or name == LOSSY
    mixed = reads.encode(MIXED, add_special=False, parse_special=False)
    assert reads.decode(mixed) == MIXED or name == LOSSY


@pytest.mark.parametrize("name", UNTOLD)
def test_vocabularies_without_expected_tokens_load(name: str) -> None:
    reads = tokenizer(name)
    assert reads.decode(reads.encode("Hello world", add_special=False)) == "Hello world"
