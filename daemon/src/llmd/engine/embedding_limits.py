"""What a step of a model that embeds holds, and what its KV pool has room for."""

from __future__ import annotations

from typing import Self

import msgspec

from llmd.api.plan import ModelPlan
from llmd.api.step import BLOCK_LEN

MAX_TEXTS = 32
"""Texts in one step: this many short ones keep a processor as busy as one long text does."""


class EmbeddingLimits(msgspec.Struct, frozen=True):
    """What the core was built for. A step has at most `MAX_TEXTS` texts and ``max_rows`` tokens.

    ``whole_texts``: each is whole in one step, because its first tokens see its last. ``num_token_types``: how many
    the model tells apart.
    """

    vocab_size: int
    context_len: int
    max_rows: int
    whole_texts: bool
    num_token_types: int = 1

    @classmethod
    def of(cls, plan: ModelPlan, chunk_len: int) -> Self:
        """The limits for a plan: one that keeps no keys and values wants texts whole."""
        whole = not plan.groups
        rows = max(chunk_len, plan.context_len) if whole else chunk_len
        return cls(plan.vocab_size, plan.context_len, rows, whole, plan.num_token_types)

    @property
    def kv_len(self) -> int:
        """Tokens for which the KV pool has room: the longest text, and beside it a step of others."""
        return self.context_len + self._others

    @property
    def kv_chunk_len(self) -> int:
        """Tokens of one step for which groups with a window have room: as `kv_len`."""
        return self.max_rows + self._others

    @property
    def _others(self) -> int:
        """What a step of texts takes, each of which may leave the rest of a block empty."""
        return self.max_rows + MAX_TEXTS * BLOCK_LEN
