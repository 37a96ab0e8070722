"""Byte-level BPE of GGUF files merges, falls back and finds special tokens as other tokenizers do."""

from __future__ import annotations

import pytest

from llmd.api.errors import TokenizerError
from llmd.chat.tokenizers.gguf.byte_pairs import load_byte_pairs
from llmd.chat.tokenizers.gguf.vocabulary import PREFIX, TokenKind, read_vocabulary
from llmd.chat.tokenizers.hf_tokenizer import HFTokenizer
from tests.daemon.chat.tokenizers.gguf.metadata import BYTE, CONTROL, DEFINED, FILE, NORMAL, UNKNOWN, stated
from tests.daemon.chat.tokenizers.gguf.metadata import bytes_and_merges as metadata


def load(*merges: str, **values: object) -> HFTokenizer:
    return load_byte_pairs(read_vocabulary(metadata(*merges, **values), FILE))  # type: ignore[arg-type]


def pieces(tokenizer: HFTokenizer, text: str, *, parse_special: bool = True) -> list[str]:
    ids = tokenizer.encode(text, add_special=False, parse_special=parse_special)
    return [tokenizer.token_text(token_id) for token_id in ids]


def test_text_is_merged_in_the_order_of_the_merges() -> None:
    assert pieces(load("b c", "a b"), "abc") == ["a", "bc"]
    assert pieces(load("a b", "b c"), "abc") == ["ab", "c"]


def test_every_text_comes_back() -> None:
    text = "Größe 你好\x00 🦙"
    tokenizer = load("Ġ G")
    assert tokenizer.decode(tokenizer.encode(text, add_special=False)) == text


def test_only_some_cuts_take_a_whole_word_that_is_a_token() -> None:
    more = {"abc": NORMAL}
    assert pieces(load("b c", pre="llama-bpe", more=more), "abc") == ["abc"]
    assert pieces(load("b c", pre="gpt-2", more=more), "abc") == ["a", "bc"]


def test_only_some_cuts_compose_characters() -> None:
    assert pieces(load("Ã ©", pre="qwen2"), "e\u0301") == ["é"]
    assert len(pieces(load("Ã ©", pre="qwen35"), "e\u0301")) == 3


def test_special_tokens_are_read_where_that_is_asked_for() -> None:
    tokenizer = load("a b")
    assert pieces(tokenizer, "ab<s>") == ["ab", "<s>"]
    assert pieces(tokenizer, "ab<s>", parse_special=False) == ["ab", "<", "s", ">"]


def test_tokens_that_the_makers_defined_are_always_found() -> None:
    tokenizer = load("a b", more={"<b c>": DEFINED})
    assert pieces(tokenizer, "ab<b c>", parse_special=False) == ["ab", "<b c>"]
    assert not tokenizer.is_special(tokenizer.vocab_size - 1)


def test_bos_is_written_where_the_file_or_else_the_cut_says_so() -> None:
    assert load("a b").encode("")[:1] == []
    assert load("a b", pre="llama-bpe").encode("") == [load("a b").bos_id]
    assert load("a b", add_bos_token=True).encode("") == [load("a b").bos_id]
    assert load("a b", pre="llama-bpe", add_bos_token=False).encode("") == []


def test_a_file_that_names_no_cut_is_cut_in_the_default_way() -> None:
    assert pieces(load("1 2", "12 34", "3 4", pre=None), "1234") == ["12", "3", "4"]


def test_a_cut_that_is_not_known_is_refused_with_the_nearest() -> None:
    with pytest.raises(TokenizerError) as error:
        load("a b", pre="lama-bpe")
    assert "'lama-bpe'" in error.value.message
    assert "llama-bpe" in error.value.message


@pytest.mark.parametrize("merge", ["a c", "x y z", "ab", "", "a ", " a b"])
def test_a_merge_of_what_is_no_token_is_refused(merge: str) -> None:
    with pytest.raises(TokenizerError, match=f"{FILE}: .*merge"):
        load_byte_pairs(read_vocabulary(metadata("a b") | {PREFIX + "merges": ["a b", merge]}, FILE))


def test_a_vocabulary_without_merges_is_refused() -> None:
    with pytest.raises(TokenizerError, match="merges"):
        load()


def gemma4() -> HFTokenizer:
    """Return a tokenizer whose tokens are text instead of bytes."""
    tokens: dict[str, TokenKind] = {"<unk>": UNKNOWN, "<bos>": CONTROL, "<eos>": CONTROL}
    tokens |= {f"<0x{byte:02X}>": BYTE for byte in range(256)}
    tokens |= dict.fromkeys(["▁", "a", "b", "▁a", "\n", "\n\n"], NORMAL)
    merges = ["▁ a", "\n \n"]
    return load_byte_pairs(read_vocabulary(stated("gemma4", tokens, merges=merges, bos_token_id=1), FILE))


def test_vocabularies_of_text_write_a_space_as_one_sign_and_the_unknown_as_bytes() -> None:
    tokenizer = gemma4()
    assert pieces(tokenizer, "b a\n\nb") == ["b", " a", "\n\n", "b"]
    assert tokenizer.encode("") == [1]
    assert tokenizer.decode(tokenizer.encode("a é🦙", add_special=False)) == "a é🦙"
