"""Merges derived from ranks split text as tiktoken does with the ranks."""

from __future__ import annotations

import random

import tiktoken
import tokenizers

from llmd.chat.tokenizers.gguf.rank_merges import merges_of
from llmd.chat.tokenizers.token_bytes import ByteLevelPieces

LONGER = (b"ab", b"bc", b"abc", b"aa", b"aaaa", b"abca", b"ca", b"bb")
RANKS = {token: rank for rank, token in enumerate([*(bytes([byte]) for byte in range(256)), *LONGER])}


def test_pairs_stand_in_the_order_of_what_they_make() -> None:
    assert list(merges_of(RANKS)) == [
        (b"a", b"b"), (b"b", b"c"), (b"a", b"bc"), (b"ab", b"c"), (b"a", b"a"), (b"aa", b"aa"),
        (b"ab", b"ca"), (b"abc", b"a"), (b"c", b"a"), (b"b", b"b"),
    ]  # fmt: skip


def test_random_texts_are_cut_as_by_tiktoken() -> None:
    signs = ByteLevelPieces().written
    vocab = {signs(token): rank for token, rank in RANKS.items()}
    merges = [(signs(left), signs(right)) for left, right in merges_of(RANKS)]
    bpe = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocab, merges=merges, ignore_merges=True))
    theirs = tiktoken.Encoding("m", pat_str=r"[\s\S]+", mergeable_ranks=RANKS, special_tokens={})
    draw = random.Random(5)
    for _ in range(500):
        text = "".join(draw.choices("abc", k=draw.randint(1, 12)))
        assert bpe.encode(text).ids == theirs.encode(text), text
