"""Sizes and places of what the shaders after the head read and write (``shaders/outputs.glsl``)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from llmd.api import MAX_RAW_TOP, StageLimits
from llmd_backend_vulkan.context import stride_of
from llmd_backend_vulkan.memory import ALIGNMENT

PART = 1024
"""Logits of a part of a row."""

HEADER_WORDS, ROW_WORDS = 4, 20
"""Words of a selection before its rows, and of each row."""

RECORD_START = 8
"""Words of a record before its lists."""

_SUM_WORDS = 12


class OutputsLayout:
    """The memory of one ticket's output rows.

    Raises:
        ValueError: there are more candidates than a part has logits.
    """

    def __init__(self, vocab: int, limits: StageLimits) -> None:
        if limits.num_candidates > PART:
            raise ValueError(f"{limits.num_candidates} candidates are more than {PART}")
        self.vocab = vocab
        self.max_outputs = limits.max_outputs
        self.kept = min(limits.num_candidates, vocab)
        """Candidates of a row."""
        self.raw_kept = min(MAX_RAW_TOP, vocab)
        self.stride = stride_of(vocab)
        """Words from a row of logits to the next."""

    @property
    def num_parts(self) -> int:
        """Parts of a row."""
        return -(-self.vocab // PART)

    @property
    def record_words(self) -> int:
        """Words of the sums and lists of a row."""
        return RECORD_START + 3 * self.kept + 2 * self.raw_kept

    @property
    def mask_words(self) -> int:
        """Words of a mask."""
        return -(-self.vocab // 32)

    @property
    def selection_words(self) -> int:
        """Words of a selection."""
        return HEADER_WORDS + ROW_WORDS * self.max_outputs

    @property
    def results_words(self) -> int:
        """Words of tokens and records."""
        return self.max_outputs * (1 + self.record_words)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Where everything is in the device's memory, and the end of the last: in words."""
        rows, parts = self.max_outputs, self.num_parts
        sizes = {
            "selection": self.selection_words,
            "raw": rows * self.stride,
            "edited": rows * self.stride,
            "keys": rows * parts * self.kept * 2,
            "raw_keys": rows * parts * self.raw_kept * 2,
            "sums": rows * parts * _SUM_WORDS,
        }
        places, end = {}, 0
        for name, size in sizes.items():
            places[name] = end
            end += -(-size // ALIGNMENT) * ALIGNMENT
        return places | {"end": end}

    @property
    def host_words(self) -> int:
        """Words of the host's memory, without those of edits."""
        return self.selection_words + self.max_outputs * self.mask_words + self.results_words
