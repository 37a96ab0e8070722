"""DRY: penalties for tokens that would continue a repetition.

Source: p-e-w 2024, "DRY: A modern repetition penalty that reliably prevents looping", with the limits of
llama.cpp.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from llmd.api.samplers import Dry

MAX_PENALTY = 1e30
"""Larger than any logit, and finite in float32."""


class RepetitionPenalty:
    """The DRY penalties of one sequence; counts the tokens since the last breaker."""

    def __init__(self, params: Dry, tokens: Sequence[int]) -> None:
        self._params = params
        self._break_ids = frozenset(params.break_ids)
        self._runs: defaultdict[int, list[tuple[int, ...]]] = defaultdict(list)
        for run in params.break_runs:
            self._runs[run[-1]].append(run)
        self._longest = _longest_that_matters(params)
        self._tokens = np.zeros(max(64, 2 * len(tokens)), np.int32)
        self._len = 0
        self._since_break = 0
        for token in tokens:
            self.append(token)

    def append(self, token: int) -> None:
        """Append a token."""
        if self._len == len(self._tokens):
            self._tokens = np.concatenate((self._tokens, np.zeros_like(self._tokens)))
        self._tokens[self._len] = token
        self._len += 1
        breaks = token in self._break_ids or any(map(self._ends_with, self._runs.get(token, ())))
        self._since_break = 0 if breaks else self._since_break + 1

    def fork(self) -> RepetitionPenalty:
        """Return a copy for a sequence that continues separately."""
        forked = RepetitionPenalty(self._params, ())
        forked._tokens, forked._len = self._tokens.copy(), self._len
        forked._since_break = self._since_break
        return forked

    def penalties(self) -> dict[int, float]:
        """Return the values to subtract from the logits of tokens that would continue a repetition."""
        window = self._tokens[max(0, self._len - self._params.last_n) : self._len]
        limit = min(self._since_break, self._longest, len(window) - 1)
        if limit < self._params.allowed_len:
            return {}
        return {
            int(window[end + 1]): self._penalty(length)
            # Repetitions are in order of length, so that the longest one for a token wins.
            for end, length in _repetitions(window, limit)
            if length >= self._params.allowed_len
        }

    def _ends_with(self, run: tuple[int, ...]) -> bool:
        return len(run) <= self._len and self._tokens[self._len - len(run) : self._len].tolist() == list(run)

    def _penalty(self, length: int) -> float:
        excess = length - self._params.allowed_len
        return min(self._params.multiplier * self._params.base**excess, MAX_PENALTY)


def _longest_that_matters(params: Dry) -> int:
    """Return the length above which the penalty no longer grows."""
    if params.base <= 1.0:
        return params.allowed_len
    return params.allowed_len + math.ceil(math.log(MAX_PENALTY) / math.log(params.base))


def _repetitions(window: NDArray[np.int32], limit: int) -> list[tuple[int, int]]:
    """Find earlier occurrences of the window's suffixes: (index of the last token, length), by length."""
    found: list[tuple[int, int]] = []
    ends = np.flatnonzero(window[:-1] == window[-1])
    length = 1
    while ends.size and length < limit:
        longer = ends >= length
        longer[longer] = window[ends[longer] - length] == window[-1 - length]
        found += [(end, length) for end in ends[~longer].tolist()]
        ends = ends[longer]
        length += 1
    return found + [(end, length) for end in ends.tolist()]
