"""Sizes that a core is built for: of its steps, and of its KV pool."""

from __future__ import annotations

from typing import Self

import msgspec

from llmd.api.messages import CHUNK_LEN
from llmd.api.plan import ModelPlan
from llmd.api.step import BLOCK_LEN

MAX_TEXTS = 32
"""Most texts in one step: this many short texts keep a processor as busy as one long text."""


class EngineLimits(msgspec.Struct, frozen=True):
    """Sizes of a core that generates."""

    vocab_size: int
    context_len: int
    slots: int
    """Most sequences that run at once."""
    max_outputs: int
    """Most output rows in a step."""
    chunk_len: int = CHUNK_LEN
    """Most prefill tokens in a step."""
    depth: int = 1
    """Most steps in flight."""
    micro_batches: int = 1
    """Number of steps that the running sequences are divided among; see `Scheduler`."""
    max_drafts: int = 0
    """Most proposed tokens of a sequence in a step."""
    adapters: tuple[str, ...] = ()
    """Names of the adapters, in the order of their numbers in steps."""

    @property
    def max_rows(self) -> int:
        """Most rows in a step."""
        return self.chunk_len + self.slots * (1 + self.max_drafts)

    @property
    def max_planned(self) -> int:
        """Most tokens of one sequence that are in flight at once."""
        return max(self.chunk_len * self.depth, 1 + self.max_drafts)

    @property
    def scored_rows(self) -> int:
        """Output rows of a step for scored prompts."""
        return self.max_outputs - self.slots * (1 + self.max_drafts)


class EmbeddingLimits(msgspec.Struct, frozen=True):
    """Sizes of a core for embeddings. A step also has at most `MAX_TEXTS` texts."""

    vocab_size: int
    context_len: int
    max_rows: int
    """Most tokens in a step."""
    whole_texts: bool
    """A text must be complete in one step, because its first tokens attend to its last."""
    num_token_types: int = 1
    """Number of token types that the model distinguishes."""

    @classmethod
    def of(cls, plan: ModelPlan, chunk_len: int) -> Self:
        """Return the limits for a plan. A plan without KV cache needs whole texts."""
        whole = not plan.groups
        rows = max(chunk_len, plan.context_len) if whole else chunk_len
        return cls(plan.vocab_size, plan.context_len, rows, whole, plan.num_token_types)

    @property
    def kv_len(self) -> int:
        """Tokens that the KV pool has room for: the longest text, and a step of other texts."""
        return self.context_len + self._others

    @property
    def kv_chunk_len(self) -> int:
        """Tokens of one step that window groups have room for, with those of other texts."""
        return self.max_rows + self._others

    @property
    def _others(self) -> int:
        """Tokens that a step of texts may occupy: each text may leave part of its last block empty."""
        return self.max_rows + MAX_TEXTS * BLOCK_LEN
