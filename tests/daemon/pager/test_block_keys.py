"""Equal keys mean equal tokens from the first one on."""

from __future__ import annotations

from llmd.api import BLOCK_LEN
from llmd.pager.block_keys import BlockKeys, prompt_key
from llmd.pager.pool import Key


def keys_of(tokens: list[int], salt: str = "", adapter: str = "") -> list[Key]:
    return BlockKeys(salt, adapter).of(tokens, len(tokens))


def test_only_full_blocks_have_keys() -> None:
    assert [len(keys_of([7] * count)) for count in (0, BLOCK_LEN - 1, BLOCK_LEN, 3 * BLOCK_LEN + 1)] == [
        0,
        0,
        1,
        3,
    ]


def test_keys_grow_with_the_tokens() -> None:
    tokens = list(range(5 * BLOCK_LEN))
    keys = BlockKeys()
    for count in range(0, len(tokens) + 1, 7):
        assert keys.of(tokens, count) == keys_of(tokens)[: count // BLOCK_LEN]
    assert keys.of(tokens, len(tokens)) == keys_of(tokens)
    assert keys.of(tokens, BLOCK_LEN) == keys_of(tokens)[:1]


def test_a_key_depends_on_every_token_before_and_on_the_salt() -> None:
    tokens = list(range(2 * BLOCK_LEN))
    other = [99, *tokens[1:]]
    assert keys_of(tokens)[1] != keys_of(other)[1]
    assert keys_of(tokens)[0] != keys_of(tokens, "another user")[0]
    assert len(set(keys_of([7] * 4 * BLOCK_LEN))) == 4


def test_a_key_depends_on_the_adapter_which_no_salt_can_stand_for() -> None:
    tokens = list(range(BLOCK_LEN))
    pairs = [("", ""), ("", "sql"), ("sql", ""), ("sql", "sql"), ("", "sql\0"), ("\0sql", "")]
    assert len({keys_of(tokens, salt, adapter)[0] for salt, adapter in pairs}) == len(pairs)
    assert len({prompt_key(tokens, salt, adapter) for salt, adapter in pairs}) == len(pairs)


def test_a_fork_keeps_what_is_common_and_goes_on_with_its_own_tokens() -> None:
    tokens = list(range(4 * BLOCK_LEN))
    other = [*tokens[: 2 * BLOCK_LEN + 3], *[7] * BLOCK_LEN, 7, 7]
    parent = BlockKeys()
    parent.of(tokens, len(tokens))
    child = parent.fork(2 * BLOCK_LEN + 3)
    assert child.of(other, len(other)) == keys_of(other)
    assert parent.of(tokens, len(tokens)) == keys_of(tokens)
