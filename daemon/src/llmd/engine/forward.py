"""Raw logits of given tokens, independent of the running requests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llmd.api.errors import MemoryBudgetError
from llmd.api.messages import StopParams
from llmd.api.samplers import SamplingParams
from llmd.engine.admission import Admission
from llmd.engine.limits import EngineLimits
from llmd.engine.steps.batch import build_step, select_rows
from llmd.engine.steps.pipeline import Pipeline
from llmd.pager.pager import Pager
from llmd.scheduler.chunk import Chunk
from llmd.scheduler.sequence import Sequence

FORWARD_ID = -1
"""Sequence id in the pager; no request has it."""


class Forward:
    """Teacher forcing: compute the logits after each token of a text."""

    def __init__(self, pipeline: Pipeline, pager: Pager, admission: Admission, limits: EngineLimits) -> None:
        self._pipeline = pipeline
        self._pager = pager
        self._admission = admission
        self._adapters = limits.adapters
        self._chunk_len = min(limits.max_outputs, limits.chunk_len)  # each row is an output

    def __call__(self, token_ids: NDArray[np.integer], adapter: str = "") -> NDArray[np.float32]:
        """Return the logits float32 ``[len(token_ids), vocab]`` after each token, from an empty cache.

        ``adapter`` is the name of the adapter that applies; empty: none.

        Raises:
            RequestError: there are no tokens, too many tokens, or a token outside the vocabulary; or
                there is no such adapter.
            MemoryBudgetError: the KV pool is too small, or running requests hold too many of its blocks.
        """
        self._admission.check_adapter(adapter)
        self._admission.check_tokens(token_ids.tolist(), max_new=0)
        self._admission.check_pool(len(token_ids))
        if self._pager.open(FORWARD_ID, token_ids.tolist(), None) is None:
            raise MemoryBudgetError(
                f"the KV pool has no room for {len(token_ids)} tokens at the moment",
                hint="wait for running requests to finish, or raise --kv-memory",
            )
        try:
            size = self._chunk_len
            return np.concatenate(
                [self._chunk(token_ids[at : at + size], adapter) for at in range(0, len(token_ids), size)]
            )
        finally:
            self._pager.free(FORWARD_ID)

    def _chunk(self, token_ids: NDArray[np.integer], adapter: str) -> NDArray[np.float32]:
        start = self._pager.length(FORWARD_ID)
        tokens = [0] * start + token_ids.tolist()  # tokens before ``start`` are not read
        sequence = Sequence(FORWARD_ID, tokens, len(tokens), SamplingParams(seed=0), StopParams(max_tokens=0))
        sequence.adapter = adapter
        took = self._pager.prepare(FORWARD_ID, len(token_ids))
        assert took, "the blocks were free when the sequence was opened"
        chunk = Chunk(sequence, start, len(token_ids), ends=False)
        step = build_step([chunk], self._pager.tables([FORWARD_ID]), adapters=self._adapters)
        rows = np.arange(len(token_ids), dtype=np.int32)
        with self._pipeline.submit(step, select_rows(rows)) as tickets:
            tickets.wait()
            self._pager.advance(FORWARD_ID, len(token_ids))
            return tickets.raw_rows(rows).copy()
