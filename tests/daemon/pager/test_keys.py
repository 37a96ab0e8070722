"""Equal keys mean equal tokens from the first on."""

from __future__ import annotations

from llmd.api import BLOCK_LEN
from llmd.pager.keys import extend_keys, root_key
from llmd.pager.pool import Key


def keys_of(tokens: list[int], salt: str = "") -> list[Key]:
    keys: list[Key] = []
    extend_keys(keys, root_key(salt), tokens, len(tokens))
    return keys


def test_only_full_blocks_have_keys() -> None:
    assert [len(keys_of([7] * count)) for count in (0, BLOCK_LEN - 1, BLOCK_LEN, 3 * BLOCK_LEN + 1)] == [
        0,
        0,
        1,
        3,
    ]


def test_keys_grow_with_the_tokens() -> None:
    tokens = list(range(5 * BLOCK_LEN))
    keys: list[Key] = []
    for count in range(0, len(tokens) + 1, 7):
        extend_keys(keys, root_key(), tokens, count)
    extend_keys(keys, root_key(), tokens, len(tokens))
    assert keys == keys_of(tokens)


def test_a_key_depends_on_every_token_before_and_on_the_salt() -> None:
    tokens = list(range(2 * BLOCK_LEN))
    other = [99, *tokens[1:]]
    assert keys_of(tokens)[1] != keys_of(other)[1]
    assert keys_of(tokens)[0] != keys_of(tokens, "another user")[0]
    assert len(set(keys_of([7] * 4 * BLOCK_LEN))) == 4
