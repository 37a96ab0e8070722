"""Log-probabilities of prompts: rows of prefill that are scored instead of drawn from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from llmd.api.messages import Logprobs, Submit
from llmd.api.step import StepResult
from llmd.scheduler.chunk import Chunk


class PromptScores:
    """What is known so far of the prompts that are to be scored, by request. Used by the loop thread alone."""

    def __init__(self) -> None:
        self._known: dict[int, list[Logprobs | None]] = {}

    def add(self, submit: Submit) -> None:
        """Take a request; one that has output already had its scores sent with the first of it."""
        if submit.prompt_logprobs is not None and not submit.output:
            self._known[submit.request_id] = [None] * (len(submit.prompt) - 1)

    def remove(self, request_id: int) -> None:
        """Forget a request; an unknown one is ignored."""
        self._known.pop(request_id, None)

    def take(self, chunks: Sequence[Chunk], result: StepResult, first_row: int) -> None:
        """Take the rows of a step from ``first_row`` on: those of its scored chunks, one after the other."""
        row = first_row
        for chunk in chunks:
            if not chunk.scored:
                continue
            known, wanted = self._known.get(chunk.sequence.request_id), chunk.sequence.prompt_logprobs
            if known is not None and wanted is not None:
                rows = range(row, row + chunk.count)
                known[chunk.start : chunk.start + chunk.count] = [_score(result, r, wanted) for r in rows]
            row += chunk.count

    def pop(self, request_id: int) -> tuple[Logprobs, ...]:
        """The scores of all tokens but the first, once; nothing for a request that wants none."""
        known = self._known.pop(request_id, None) if self._known else None
        if known is None:
            return ()
        scores = tuple(score for score in known if score is not None)
        assert len(scores) == len(known), "a prompt is scored before its first token is drawn"
        return scores


def _score(result: StepResult, row: int, wanted: int) -> Logprobs:
    lse = float(result.raw_logsumexp[row])
    top = (result.top_raw[row, :wanted].astype(np.float64) - lse).tolist()
    return Logprobs(
        float(result.target_raw[row]) - lse, tuple(result.top_ids[row, :wanted].tolist()), tuple(top)
    )
