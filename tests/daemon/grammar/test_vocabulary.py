from __future__ import annotations

from llmd.api.messages import Vocabulary
from llmd.grammar.vocabulary import token_trie
from tests.daemon.grammar.conftest import END, OPEN, VOCAB_SIZE, VOCABULARY


def test_every_token_keeps_its_id_and_the_end_comes_last() -> None:
    trie = token_trie(VOCABULARY, VOCAB_SIZE)
    assert (trie.vocab_size, trie.eos_token) == (VOCAB_SIZE + 1, VOCAB_SIZE)
    assert trie.decode_bytes([*b"a{", 256]) == b'a{{"'
    assert trie.is_special_token(END)
    assert trie.is_special_token(OPEN)
    assert not trie.is_special_token(256)


def test_a_vocabulary_larger_than_the_models_is_cut() -> None:
    trie = token_trie(Vocabulary((b"a", b"b", b"c"), special_ids=(2,)), 2)
    assert (trie.vocab_size, trie.eos_token) == (3, 2)
