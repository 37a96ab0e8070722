"""Repetition, frequency and presence penalties, from the counts of tokens in a sequence.

Sources: Keskar et al. 2019, "CTRL" (repetition penalty, over prompt and output); OpenAI's API reference
(frequency and presence penalties, over the output); llama.cpp (``repeat_last_n``: all three over the last
tokens).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from llmd.api.messages import SamplingParams


class Penalties:
    """Counts the tokens of one sequence."""

    def __init__(self, params: SamplingParams, prompt: Sequence[int], output: Sequence[int]) -> None:
        self._params = params
        self._window = params.penalty_last_n
        everything = [*prompt, *output]
        self._recent = (
            everything if self._window is None else everything[-self._window :] * bool(self._window)
        )
        self._seen = set(everything) if self._window is None else set()
        self._count = Counter(output if self._window is None else self._recent)

    @staticmethod
    def wanted(params: SamplingParams) -> bool:
        """Return whether a request has any penalty."""
        penalties = (params.repetition_penalty, params.frequency_penalty, params.presence_penalty)
        return penalties != (1.0, 0.0, 0.0) and params.penalty_last_n != 0

    @property
    def tokens(self) -> Iterable[int]:
        """All tokens that have a penalty."""
        return self._seen if self._window is None and self._params.repetition_penalty != 1.0 else self._count

    def append(self, token: int) -> tuple[int, ...]:
        """Append a token; return the tokens whose penalty may have changed."""
        self._count[token] += 1
        if self._window is None:
            self._seen.add(token)
            return (token,)
        self._recent.append(token)
        if len(self._recent) <= self._window:
            return (token,)
        gone = self._recent[-1 - self._window]
        self._count[gone] -= 1
        return (token, gone)

    def fork(self) -> Penalties:
        """Return a copy for a sequence that continues separately."""
        forked = Penalties(self._params, (), ())
        forked._recent, forked._seen = self._recent.copy(), self._seen.copy()
        forked._count = self._count.copy()
        return forked

    def of(self, token: int) -> tuple[float, float]:
        """Return the factor and the summand of a token's logit."""
        params, count = self._params, self._count[token]
        seen = token in self._seen if self._window is None else count > 0
        added = -params.frequency_penalty * count - params.presence_penalty * (count > 0)
        return params.repetition_penalty if seen else 1.0, added
