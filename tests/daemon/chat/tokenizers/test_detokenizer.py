from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmd.chat.tokenizers.detokenizer import IncrementalDetokenizer
from llmd.chat.tokenizers.tokenizer import Tokenizer, Vocabulary
from llmd.chat.tokenizers.tokenizer_loader import load_tokenizer

GOLDEN = Path(__file__).parents[3] / "golden/tokenizers"
Load = Callable[[str], Tokenizer]


class ByteTokenizer(Tokenizer):
    """Token i is byte i."""

    def __init__(self) -> None:
        super().__init__(Vocabulary(size=256))

    def _encode(self, text: str, *, parse_special: bool, at_start: bool) -> list[int]:
        return list(text.encode())

    def token_bytes(self, token_id: int) -> bytes:
        return bytes([token_id])

    def token_id(self, text: str) -> int | None:
        return None


def feed_all(detokenizer: IncrementalDetokenizer, ids: list[int]) -> Iterator[str]:
    yield from map(detokenizer.feed, ids)
    yield detokenizer.finish()


def test_pieces_join_to_the_whole_text(kind: str, tokenizer: Tokenizer) -> None:
    for case in json.loads((GOLDEN / kind / "expected.json").read_text()):
        ids = tokenizer.encode(case["text"])
        pieces = feed_all(IncrementalDetokenizer(tokenizer, at_text_start=True, skip_special=False), ids)
        assert "".join(pieces) == tokenizer.decode(ids)


def test_text_cut_at_every_byte_never_shows_half_a_character() -> None:
    content = "aé你👩‍👩‍👧\u0301z".encode()
    for cut in range(len(content) + 1):
        detokenizer = IncrementalDetokenizer(ByteTokenizer())
        text = "".join(map(detokenizer.feed, content[:cut]))
        assert text == content[:cut].decode(errors="ignore")
        assert detokenizer.finish() == ("" if text.encode() == content[:cut] else "�")


@given(st.binary())
def test_bytes_that_are_no_text_become_what_python_decodes(content: bytes) -> None:
    pieces = feed_all(IncrementalDetokenizer(ByteTokenizer()), list(content))
    assert "".join(pieces) == content.decode("utf-8", "replace")


def test_special_tokens_are_skipped_unless_asked_for(tokenizer: Tokenizer) -> None:
    special = tokenizer.vocabulary.specials[-1]
    assert IncrementalDetokenizer(tokenizer).feed(special.token_id) == ""
    assert IncrementalDetokenizer(tokenizer, skip_special=False).feed(special.token_id) == special.text


@pytest.mark.parametrize("kind", ["sentencepiece_llama", "metaspace_json", "prepended_json"])
def test_leading_space_is_dropped_only_where_a_text_begins(kind: str, load: Load) -> None:
    tokenizer = load(kind)
    ids = tokenizer.encode("two words", add_special=False)
    begins = feed_all(
        IncrementalDetokenizer(tokenizer, at_text_start=True), [*tokenizer.vocabulary.prefix_ids, *ids]
    )
    continues = feed_all(IncrementalDetokenizer(tokenizer), ids)
    assert "".join(begins) == "two words"
    assert "".join(continues) == " two words"


def test_ids_outside_the_vocabulary_have_no_text() -> None:
    tokenizer = load_tokenizer(GOLDEN / "tiktoken_llama3")
    assert IncrementalDetokenizer(tokenizer).feed(tokenizer.vocab_size + 5) == ""
