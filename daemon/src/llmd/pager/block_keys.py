"""Keys of the contents of KV blocks: a hash chain, so that equal keys mean equal tokens from the start.

Source: the prefix cache of vLLM (block hashes that include their parent's); BLAKE2b, RFC 7693.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from hashlib import blake2b

from llmd.api.step import BLOCK_LEN
from llmd.pager.pool import Key

KEY_BYTES = 16
"""A collision would mix the prompts of two users. It never happens by chance with 128 bits; with 64, an
attacker could construct one."""


def prompt_key(tokens: Sequence[int], salt: str = "", adapter: str = "") -> Key:
    """Return the key of a whole prompt, whether or not its last block is full."""
    first = _first_key(salt, adapter)
    return blake2b(array("i", tokens).tobytes(), digest_size=KEY_BYTES, key=first).digest()


class BlockKeys:
    """The keys of a sequence's full blocks. Sequences with different salts or adapters share no keys.

    The sequence owns it, so that each block is hashed only once, even if the sequence is preempted.
    """

    def __init__(self, salt: str = "", adapter: str = "") -> None:
        self._keys = [_first_key(salt, adapter)]

    def of(self, tokens: Sequence[int], num_tokens: int) -> list[Key]:
        """Return the keys of the full blocks of the first ``num_tokens`` tokens, which must never change."""
        num_blocks = num_tokens // BLOCK_LEN
        for start in range((len(self._keys) - 1) * BLOCK_LEN, num_blocks * BLOCK_LEN, BLOCK_LEN):
            content = array("i", tokens[start : start + BLOCK_LEN]).tobytes()
            self._keys.append(blake2b(self._keys[-1] + content, digest_size=KEY_BYTES).digest())
        return self._keys[1 : num_blocks + 1]

    def fork(self, num_tokens: int) -> BlockKeys:
        """Return the keys of the first ``num_tokens`` tokens, for a sequence that continues differently."""
        chain = BlockKeys()
        chain._keys = self._keys[: num_tokens // BLOCK_LEN + 1]
        return chain


def _first_key(salt: str, adapter: str) -> Key:
    """Return the key before the first block. An adapter keys the hash: no salt has the effect of one."""
    key = blake2b(adapter.encode(), digest_size=KEY_BYTES).digest() if adapter else b""
    return blake2b(salt.encode(), digest_size=KEY_BYTES, key=key).digest()
