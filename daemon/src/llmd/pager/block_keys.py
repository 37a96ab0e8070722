"""What names the contents of KV blocks: a hash chain, so that equal keys mean equal tokens from the first on.

Source: the prefix cache of vLLM (block hashes that include their parent's); BLAKE2b, RFC 7693.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from hashlib import blake2b

from llmd.api.step import BLOCK_LEN
from llmd.pager.pool import Key

KEY_BYTES = 16
"""A chance collision would mix two users' prompts: with 128 bits it never happens, with 64 an attacker makes it."""


def prompt_key(tokens: Sequence[int], salt: str = "") -> Key:
    """Names a whole prompt, full blocks or not."""
    return blake2b(array("i", tokens).tobytes(), digest_size=KEY_BYTES, key=_salt_key(salt)).digest()


class BlockKeys:
    """The keys of a sequence's full blocks. It belongs to the sequence, so that each block is hashed once, however often
    the sequence is tried or preempted. Sequences of different salts share nothing.
    """

    def __init__(self, salt: str = "") -> None:
        self._keys = [_salt_key(salt)]

    def of(self, tokens: Sequence[int], num_tokens: int) -> list[Key]:
        """The keys of the full blocks among the first ``num_tokens`` tokens, which are always the same."""
        num_blocks = num_tokens // BLOCK_LEN
        for start in range((len(self._keys) - 1) * BLOCK_LEN, num_blocks * BLOCK_LEN, BLOCK_LEN):
            content = array("i", tokens[start : start + BLOCK_LEN]).tobytes()
            self._keys.append(blake2b(self._keys[-1] + content, digest_size=KEY_BYTES).digest())
        return self._keys[1 : num_blocks + 1]

    def fork(self, num_tokens: int) -> BlockKeys:
        """A chain of the first ``num_tokens`` tokens, which may go on with others."""
        chain = BlockKeys()
        chain._keys = self._keys[: num_tokens // BLOCK_LEN + 1]
        return chain


def _salt_key(salt: str) -> Key:
    return blake2b(salt.encode(), digest_size=KEY_BYTES).digest()
