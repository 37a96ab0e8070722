"""WordPiece of GGUF files splits words as BERT's own files do."""

from __future__ import annotations

import pytest

from llmd.api.errors import TokenizerError
from llmd.chat.tokenizers.gguf.vocabulary import read_vocabulary
from llmd.chat.tokenizers.gguf.word_pieces import load_word_pieces
from llmd.chat.tokenizers.hf_tokenizer import HFTokenizer
from tests.daemon.chat.tokenizers.gguf.metadata import CONTROL, FILE, NORMAL, stated, words

WORDS = ("▁play", "ing", "▁a", "▁,", "[unused0]", "▁Play")


def load(*pieces: str, **values: object) -> HFTokenizer:
    return load_word_pieces(read_vocabulary(words(*pieces, **values), FILE))


def test_pieces_that_begin_a_word_and_those_that_go_on_are_told_apart() -> None:
    tokenizer = load(*WORDS)
    ids = tokenizer.encode("Playing, aing ing", add_special=False)
    assert ids == [4, 5, 7, 6, 5, 1]
    assert tokenizer.decode(ids[:3]) == "playing ,"


def test_a_text_and_a_pair_stand_between_their_marks() -> None:
    tokenizer = load(*WORDS)
    assert tokenizer.encode_whole("a") == [2, 6, 3]
    pair = tokenizer.encode_pair("a", "play")
    assert (pair.ids, pair.second_at) == ([2, 6, 3, 4, 3], 3)


def test_text_keeps_its_case_and_accents_where_the_file_says_so() -> None:
    cased = load(*WORDS, **{"normalizer.lowercase": False})
    assert cased.encode("Play", add_special=False) == [9]
    assert load(*WORDS).encode("pláy", add_special=False) == [4]
    assert load(*WORDS, **{"normalizer.strip_accents": False}).encode("pláy", add_special=False) == [1]


def test_what_stands_in_brackets_is_a_token_of_its_own() -> None:
    assert load(*WORDS).token_id("[unused0]") == 8


def test_newer_files_call_the_first_mark_bos() -> None:
    assert load(*WORDS, cls_token_id=None, bos_token_id=2).encode("") == [2]


def test_a_vocabulary_without_its_marks_is_refused() -> None:
    bare = stated("bert", {"[UNK]": CONTROL, "▁a": NORMAL}, unknown_token_id=0)
    with pytest.raises(TokenizerError, match="cls_token"):
        load_word_pieces(read_vocabulary(bare, FILE))
