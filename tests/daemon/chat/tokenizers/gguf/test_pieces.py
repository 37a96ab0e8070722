"""Text between the tokens that are matched as a whole is split into pieces as SentencePiece does."""

from __future__ import annotations

import pytest

from llmd.api.errors import TokenizerError
from llmd.chat.tokenizers.gguf.pieces import load_pieces
from llmd.chat.tokenizers.gguf.vocabulary import read_vocabulary
from llmd.chat.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer
from tests.daemon.chat.tokenizers.gguf.metadata import (
    CONTROL,
    DEFINED,
    FILE,
    NORMAL,
    UNKNOWN,
    UNUSED,
    scored_pieces,
    stated,
)


def load(*pieces: str, **values: object) -> SentencePieceTokenizer:
    return load_pieces(read_vocabulary(scored_pieces(*pieces, **values), FILE))  # type: ignore[arg-type]


def pieces(tokenizer: SentencePieceTokenizer, text: str, *, parse_special: bool = True) -> list[str]:
    ids = tokenizer.encode(text, add_special=False, parse_special=parse_special)
    return [tokenizer.token_text(token_id) for token_id in ids]


def test_the_likeliest_piece_is_merged_first() -> None:
    assert pieces(load("bc", "ab", "a", "b", "c", "▁"), "abc") == [" ", "a", "bc"]
    assert pieces(load("ab", "bc", "a", "b", "c", "▁"), "abc") == [" ", "ab", "c"]


def test_bos_stands_before_a_text_unless_the_file_says_otherwise() -> None:
    assert load("▁").encode("") == [1]
    assert load("▁", add_bos_token=False).encode("") == []
    assert load("▁").encode_whole("") == [1]
    assert load("▁", add_eos_token=True).encode_whole("") == [1, 2]


def test_a_text_begins_with_a_space_that_decoding_takes_away_unless_the_file_says_otherwise() -> None:
    tokenizer = load("▁a", "▁", "a")
    assert pieces(tokenizer, "a") == [" a"]
    assert tokenizer.decode(tokenizer.encode("a", add_special=False)) == "a"
    bare = load("▁a", "▁", "a", add_space_prefix=False)
    assert pieces(bare, "a") == ["a"]
    assert bare.decode(bare.encode(" a", add_special=False)) == " a"


def test_text_after_a_special_token_begins_with_a_space_as_well() -> None:
    assert pieces(load("▁a", "▁", "a"), "a</s>a") == [" a", "</s>", " a"]


def test_special_tokens_in_text_stay_text_where_that_is_asked_for() -> None:
    assert pieces(load("▁", "s", "<", "/", ">"), "</s>", parse_special=False) == [" ", "<", "/", "s", ">"]


def test_tokens_that_the_makers_defined_are_always_found() -> None:
    tokenizer = load("▁", "<", "b", "r", ">", more={"<br>": DEFINED})
    assert "<br>" in pieces(tokenizer, "b<br>b", parse_special=False)
    assert tokenizer.decode(tokenizer.encode("<br>")) == "<s><br>"


def test_what_no_piece_has_becomes_bytes() -> None:
    tokenizer = load("▁")
    ids = tokenizer.encode("é", add_special=False)
    assert [tokenizer.token_bytes(token_id) for token_id in ids] == [b" ", b"\xc3", b"\xa9"]


def test_unused_and_empty_tokens_are_never_written() -> None:
    tokenizer = load("▁", "a", "b", more={"ab": UNUSED, "": NORMAL, "<x>": UNKNOWN})
    assert pieces(tokenizer, "ab") == [" ", "a", "b"]
    assert pieces(tokenizer, "[EMPTY_263]", parse_special=False).count("[EMPTY_263]") == 0
    assert tokenizer.vocab_size == 265


def test_special_tokens_of_phi_3_swallow_the_line_after_them() -> None:
    metadata = scored_pieces("▁a", "▁", "a", more={"<|end|>": CONTROL}) | {"general.architecture": "phi3"}
    assert pieces(load_pieces(read_vocabulary(metadata, FILE)), "a<|end|>\na") == [" a", "<|end|>", " a"]


def test_a_unigram_model_ends_texts_with_eos() -> None:
    tokens = {"<pad>": CONTROL, "</s>": CONTROL, "<unk>": UNKNOWN, "▁a": NORMAL, "▁": NORMAL, "a": NORMAL}
    values = {"add_space_prefix": True, "remove_extra_whitespaces": True}
    tokenizer = load_pieces(read_vocabulary(stated("t5", tokens, **values), FILE))
    assert tokenizer.encode_whole(" a  a") == [3, 3, 1]


def test_a_vocabulary_that_sentencepiece_refuses_is_refused_with_its_reason() -> None:
    broken = scored_pieces("▁", more={"not a byte": UNKNOWN})
    broken["tokenizer.ggml.token_type"][-1] = 6
    with pytest.raises(TokenizerError, match=FILE):
        load_pieces(read_vocabulary(broken, FILE))


def test_a_vocabulary_that_has_nothing_for_the_unknown_is_refused() -> None:
    with pytest.raises(TokenizerError, match="unknown_token_id"):
        load_pieces(read_vocabulary(stated("t5", {"a": NORMAL}), FILE))
