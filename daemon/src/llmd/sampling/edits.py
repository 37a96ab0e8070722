"""What penalties and biases do to the logits of a sequence, as the sparse edits of a selection."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from llmd.api.messages import SamplingParams


class LogitEdits:
    """The edits of the next row of one sequence. Its tokens are all its state: a replay gives the same.

    Per vocabulary entry: how often the output has it, whether prompt or output has it, its bias. O(vocabulary) bytes and
    work for each row, without a Python loop.

    Sources: Keskar et al. 2019, "CTRL" (repetition penalty, over prompt and output); OpenAI's API reference (frequency
    and presence penalties over the output, ``logit_bias``).
    """

    def __init__(
        self, params: SamplingParams, vocab_size: int, prompt: Sequence[int], output: Sequence[int]
    ) -> None:
        self._params = params
        self._count = np.bincount(np.array(output, np.int64), minlength=vocab_size)
        self._seen = self._count > 0
        self._seen[np.array(prompt, np.int64)] = True
        self._bias = np.zeros(vocab_size, np.float32)
        for token, bias in params.logit_bias:
            self._bias[token] = bias

    @staticmethod
    def wanted(params: SamplingParams) -> bool:
        """Whether a request edits logits at all."""
        penalties = (params.repetition_penalty, params.frequency_penalty, params.presence_penalty)
        return penalties != (1.0, 0.0, 0.0) or bool(params.logit_bias)

    def append(self, token: int) -> None:
        """Take a token that was drawn."""
        self._count[token] += 1
        self._seen[token] = True

    def row(self) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32]]:
        """Edited ids int32 ``[E]`` ascending, their factors and biases float32 ``[E]``."""
        params = self._params
        penalised = self._seen if params.repetition_penalty != 1.0 else self._count > 0
        ids = np.flatnonzero(penalised | (self._bias != 0.0))
        factors = np.where(self._seen[ids], params.repetition_penalty, 1.0)
        count = self._count[ids]
        penalty = params.frequency_penalty * count + params.presence_penalty * (count > 0)
        return (
            ids.astype(np.int32),
            factors.astype(np.float32),
            (self._bias[ids] - penalty).astype(np.float32),
        )
