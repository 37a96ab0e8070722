"""The sparse edits that a request makes to the logits of its next token."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

from llmd.api.messages import SamplingParams
from llmd.api.samplers import NEVER_BIAS
from llmd.sampling.dry import RepetitionPenalty
from llmd.sampling.edit_table import Edits, EditTable
from llmd.sampling.penalties import Penalties


class LogitEdits:
    """The edits of the next row of one sequence. They depend only on its tokens: a replay gives the same.

    Sources: OpenAI's API reference (``logit_bias``); vLLM (``bad_words``, over the output); for the others
    see `Penalties` and `RepetitionPenalty`.
    """

    def __init__(self, params: SamplingParams, prompt: Sequence[int], output: Sequence[int]) -> None:
        self._biases = {i: bias if bias > NEVER_BIAS else -math.inf for i, bias in params.logit_bias}
        self._biases |= {run[0]: -math.inf for run in params.bad_words if len(run) == 1}
        self._bad_runs = [list(run) for run in params.bad_words if len(run) > 1]
        self._output = list(output)
        self._penalties = Penalties(params, prompt, output) if Penalties.wanted(params) else None
        self._dry = RepetitionPenalty(params.dry, [*prompt, *output]) if params.dry else None
        self._table = EditTable()
        for token in {*self._biases, *(self._penalties.tokens if self._penalties else ())}:
            self._refresh(token)

    @staticmethod
    def wanted(params: SamplingParams) -> bool:
        """Return whether a request edits logits at all."""
        edits = params.logit_bias or params.bad_words or params.dry
        return Penalties.wanted(params) or bool(edits)

    def fork(self) -> LogitEdits:
        """Return a copy for a sequence that continues separately; data that never changes is shared."""
        shared = (self._biases, self._bad_runs)
        forks = {id(one): one and one.fork() for one in (self._table, self._penalties, self._dry)}
        own = forks | {id(self._output): self._output.copy()}
        return copy.deepcopy(self, {id(one): one for one in shared} | own)

    def append(self, token: int) -> None:
        """Append a token that was drawn."""
        if self._bad_runs:
            self._output.append(token)
        if self._dry is not None:
            self._dry.append(token)
        if self._penalties is not None:
            for changed in self._penalties.append(token):
                self._refresh(changed)

    def row(self) -> Edits:
        """Return ids int32 ``[E]``, distinct, factors and biases float32 ``[E]``; valid until `append`."""
        passing = {} if self._dry is None else {i: -p for i, p in self._dry.penalties().items()}
        for run in self._bad_runs:
            if self._output[1 - len(run) :] == run[:-1]:
                passing[run[-1]] = -math.inf
        return self._table.row(passing)

    def _refresh(self, token: int) -> None:
        """Update the entry of a token."""
        factor, added = (1.0, 0.0) if self._penalties is None else self._penalties.of(token)
        self._table.set(token, factor, self._biases.get(token, 0.0) + added)
