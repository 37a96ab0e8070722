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


def root_key(salt: str = "") -> Key:
    """The key before the first block. Sequences of different salts share nothing."""
    return blake2b(salt.encode(), digest_size=KEY_BYTES).digest()


def extend_keys(keys: list[Key], root: Key, tokens: Sequence[int], num_tokens: int) -> None:
    """Append the keys of the full blocks among the first ``num_tokens`` tokens that ``keys`` lacks."""
    for start in range(len(keys) * BLOCK_LEN, num_tokens - BLOCK_LEN + 1, BLOCK_LEN):
        parent = keys[-1] if keys else root
        content = array("i", tokens[start : start + BLOCK_LEN]).tobytes()
        keys.append(blake2b(parent + content, digest_size=KEY_BYTES).digest())
