"""Log-probabilities of prompts, from the rows of prefill."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from llmd.api.messages import Submit
from llmd.api.results import Logprobs
from llmd.api.step import StepResult
from llmd.scheduler.chunk import Chunk


class PromptScores:
    """Collects the scores of prompts by request. Used by the loop thread only."""

    def __init__(self) -> None:
        self._known: dict[int, list[Logprobs | None]] = {}

    def add(self, submit: Submit) -> None:
        """Add a request, unless it has output: then its scores were already sent with the first token."""
        if submit.prompt_logprobs is not None and not submit.output:
            self._known[submit.request_id] = [None] * (len(submit.prompt) - 1)

    def remove(self, request_id: int) -> None:
        """Remove a request; unknown ids are ignored."""
        self._known.pop(request_id, None)

    def take(self, chunks: Sequence[Chunk], result: StepResult, first_row: int) -> None:
        """Read the scores of a step. The rows of its scored chunks begin at ``first_row``, in order."""
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
        """Remove and return the scores of all tokens but the first; empty if the request asks for none."""
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
