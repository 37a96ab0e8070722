"""Copy tokens and candidates to the host in one copy, and arrange them as a `StepResult`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llmd.api import MAX_RAW_TOP, Selection, StepResult
from llmd.api.draws import HOST
from llmd_backend_cuda.outputs.inputs import described_rows
from llmd_backend_cuda.outputs.layout import RECORD_START, Layout
from llmd_backend_cuda.runtime import Runtime


class Results:
    """The results of one ticket: tokens of all rows, then records of the rows of which more is wanted."""

    def __init__(self, runtime: Runtime, layout: Layout) -> None:
        """Allocate device memory and pinned memory.

        Raises:
            MemoryBudgetError: there is not enough.
        """
        self._runtime = runtime
        self._layout = layout
        self.memory = runtime.allocate(layout.results_bytes())
        self._pinned = runtime.pinned(layout.results_bytes())
        self._tokens = self._pinned[: 4 * layout.max_outputs].view(np.int32)
        last = layout.token_bytes + 4 * layout.max_outputs * layout.record_words
        words = self._pinned[layout.token_bytes : last].view(np.uint32)
        self._records = words.reshape(layout.max_outputs, layout.record_words)
        self._arrays = _Arrays(layout)

    @property
    def records_pointer(self) -> int:
        """Address of the records on the device; the tokens begin the memory."""
        return self.memory.pointer + self._layout.token_bytes

    def download(self, selection: Selection) -> None:
        """Begin to copy what the selection asks for; without candidates, 4 bytes a row."""
        described = int(np.count_nonzero(described_rows(selection)))
        num_bytes = 4 * selection.num_rows
        if described:
            num_bytes = self._layout.token_bytes + 4 * described * self._layout.record_words
        if num_bytes:
            self._runtime.download(self._pinned[:num_bytes], self.memory, 0)

    def result(self, selection: Selection) -> StepResult:
        """Return what was copied. The stream has reached the end of the copy; the arrays are used again."""
        count, draws = selection.num_rows, selection.draws
        described = np.flatnonzero(described_rows(selection))
        self._arrays.fill(described, self._records[: described.size])
        top = min(selection.raw_top, self._layout.vocab)
        return self._arrays.result(
            count,
            top,
            None if draws is None else np.where(draws.kinds == HOST, np.int32(-1), self._tokens[:count]),
        )


class _Arrays:
    """Host arrays with an entry for each output row."""

    def __init__(self, layout: Layout) -> None:
        outputs, kept = layout.max_outputs, layout.num_candidates
        self._kept = kept
        self._sums = np.zeros((6, outputs), np.uint32)
        self._lists = np.zeros((3, outputs, kept), np.uint32)
        self._top = np.zeros((2, outputs, MAX_RAW_TOP), np.uint32)

    def fill(self, rows: NDArray[np.intp], records: NDArray[np.uint32]) -> None:
        """Copy records to their output rows."""
        if not rows.size:
            return
        self._sums[:, rows] = records[:, :6].T
        end = RECORD_START + 3 * self._kept
        lists = records[:, RECORD_START:end].reshape(-1, 3, self._kept)
        self._lists[:, rows] = lists.transpose(1, 0, 2)
        self._top[:, rows] = records[:, end:].reshape(-1, 2, MAX_RAW_TOP).transpose(1, 0, 2)

    def result(self, count: int, top: int, tokens: NDArray[np.int32] | None) -> StepResult:
        """Return the first rows as a result."""
        floats = self._sums[:, :count].view(np.float32)
        lists = self._lists[:, :count]
        tops = np.ascontiguousarray(self._top[:, :count, :top])
        return StepResult(
            ids=lists[0].view(np.int32),
            edited=lists[1].view(np.float32),
            raw=lists[2].view(np.float32),
            raw_logsumexp=floats[0],
            edited_logsumexp=floats[1],
            edited_entropy=floats[2],
            edited_deviation=floats[3],
            num_allowed=self._sums[4, :count].view(np.int32),
            target_raw=floats[5],
            top_ids=tops[0].view(np.int32),
            top_raw=tops[1].view(np.float32),
            tokens=tokens,
        )
