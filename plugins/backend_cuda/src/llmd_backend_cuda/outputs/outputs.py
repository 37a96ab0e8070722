"""The output rows of one ticket of a stage, from logits to results."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llmd.api import LateEdits, Selection, StageLimits, StepResult
from llmd.api.checks import check_late_edits
from llmd.api.output_checks import check_masks
from llmd_backend_cuda.outputs.inputs import Inputs
from llmd_backend_cuda.outputs.layout import (
    AFTER_EDITS,
    AFTER_MASKS,
    FIRST,
    HEADER,
    THREADS,
    Layout,
    OutputsArgs,
)
from llmd_backend_cuda.outputs.results import Results
from llmd_backend_cuda.runtime import KernelSpec, Launch, Memory, Runtime

SCAN = KernelSpec.of("candidates", "scan_parts")
FINISH = KernelSpec.of("candidates", "finish_rows")


class Outputs:
    """Logits, edits, candidates and tokens of one ticket, as `llmd.api.candidates.OutputRows` defines them.

    A step calls `upload`, runs the launches of `before_late` after the head has written `raw`, and calls
    `download` as soon as the results are complete: at once, or after `apply_edits` and `apply_masks`. Once
    the stream has reached that point, `result` reads the results. Nothing waits for the device but
    `edited_rows` and `raw_rows`. The stream must have reached the end of a ticket's step before the ticket is
    used again.
    """

    def __init__(self, runtime: Runtime, vocab_size: int, limits: StageLimits) -> None:
        """Allocate all memory.

        Raises:
            MemoryBudgetError: there is not enough.
            ValueError: the limits ask for more candidates than the kernels select.
        """
        self._runtime = runtime
        self._layout = Layout.of(vocab_size, limits)
        self._inputs = Inputs(runtime, self._layout)
        self._results = Results(runtime, self._layout)
        sizes = self._layout.device_bytes()
        self.raw = runtime.allocate(sizes["raw"])
        """Float32 ``[max_outputs, vocab]``: the head writes the logits of the output rows here."""
        self._edited = runtime.allocate(sizes["edited"])
        self._scratch = {
            name: runtime.allocate(sizes[name]) for name in ("group_best", "raw_group_best", "parts")
        }
        self._scan = runtime.kernel(SCAN)
        self._finish = runtime.kernel(FINISH)
        self._args = [self._make_args(phase) for phase in (FIRST, AFTER_EDITS, AFTER_MASKS)]
        self._launches: dict[tuple[int, int], tuple[Launch, ...]] = {}
        self._selection: Selection | None = None
        self._needs_edits = self._needs_masks = False

    @staticmethod
    def num_bytes(vocab_size: int, limits: StageLimits) -> int:
        """Return the bytes of the device's memory that one ticket takes."""
        return sum(Layout.of(vocab_size, limits).device_bytes().values())

    @property
    def tokens_pointer(self) -> int:
        """Address of int32 ``[max_outputs]``: the token of each output row, for a step that is fed.

        For a row that the host draws it is the best edited candidate.
        """
        return self._results.memory.pointer

    @property
    def is_complete(self) -> bool:
        """Whether all edits and masks are known, so that results can be copied."""
        return not (self._needs_edits or self._needs_masks)

    def upload(self, selection: Selection) -> None:
        """Begin to copy a selection to the device.

        Raises:
            MemoryBudgetError: there are more edits than fit in memory.
        """
        self._selection = selection
        self._needs_edits = selection.late is not None and bool(selection.late.any())
        self._needs_masks = bool(selection.masked.any())
        self._inputs.upload(selection)

    def before_late(self, outputs: int) -> tuple[Launch, ...]:
        """Return the launches for rows without late edits and masks, of at most ``outputs`` output rows.

        They depend on nothing else, so that they can be captured.
        """
        return self._launch(outputs, FIRST)

    def apply_edits(self, edits: LateEdits) -> None:
        """Apply the edits of the late rows of the selection, as `Stage.apply_edits`.

        Raises:
            ValueError: an array violates the contract.
            MemoryBudgetError: there are more edits than fit in memory.
        """
        selection = self._current()
        check_late_edits(self._layout.vocab, selection, edits)
        self._inputs.upload_edits(edits)
        self._needs_edits = False
        self._run(AFTER_EDITS)

    def apply_masks(self, masks: NDArray[np.uint32]) -> None:
        """Apply the masks of the masked rows of the selection, as `Stage.apply_masks`.

        Raises:
            ValueError: wrong shape or dtype, or late rows still wait for `apply_edits`.
        """
        check_masks(self._layout.vocab, self._current(), masks)
        if self._needs_edits:
            raise ValueError("late rows need apply_edits before apply_masks")
        if not masks.size:
            return
        self._inputs.upload_masks(masks)
        self._needs_masks = False
        self._run(AFTER_MASKS)

    def check_complete(self) -> None:
        """Check that all edits and masks are known.

        Raises:
            ValueError: late rows still wait for `apply_edits`, or masked rows for `apply_masks`.
        """
        if self._needs_edits:
            raise ValueError("late rows have no candidates before apply_edits")
        if self._needs_masks:
            raise ValueError("masked rows have no candidates before apply_masks")

    def download(self) -> None:
        """Begin to copy the results to the host."""
        self._results.download(self._current())

    def result(self) -> StepResult:
        """Return the results, after the stream has reached the end of `download`.

        The arrays are valid until the next `result` of the ticket.

        Raises:
            ValueError: edits or masks are missing.
        """
        self.check_complete()
        return self._results.result(self._current())

    def edited_rows(self, outputs: NDArray[np.int32]) -> NDArray[np.float32]:
        """Wait, and return the edited logits ``[len(outputs), vocab]`` of output rows, as `Stage.rows`.

        Raises:
            ValueError: edits or masks are missing.
        """
        self.check_complete()
        selection = self._current()
        edited = selection.masked | (np.diff(selection.edit_offsets) > 0)
        if selection.late is not None:
            edited |= selection.late
        return self._download_rows(outputs, edited[outputs])

    def raw_rows(self, outputs: NDArray[np.int32]) -> NDArray[np.float32]:
        """Wait, and return the raw logits ``[len(outputs), vocab]`` of output rows, as `Stage.raw_rows`."""
        return self._download_rows(outputs, np.zeros(len(outputs), np.bool_))

    def _download_rows(self, outputs: NDArray[np.int32], edited: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Copy rows of the edited or the raw logits; neighbours that are neighbours there at once."""
        rows = np.empty((len(outputs), self._layout.vocab), np.float32)
        breaks = np.flatnonzero((np.diff(outputs) != 1) | (np.diff(edited) != 0)) + 1
        for run in np.split(np.arange(len(outputs)), breaks):
            if run.size:
                first = int(run[0])
                memory: Memory = self._edited if edited[first] else self.raw
                offset = 4 * self._layout.vocab * int(outputs[first])
                self._runtime.download(rows[first : first + run.size], memory, offset)
        return rows

    def _run(self, phase: int) -> None:
        for launch in self._launch(self._current().num_rows, phase):
            self._runtime.launch(launch)

    def _launch(self, outputs: int, phase: int) -> tuple[Launch, ...]:
        """Return the launches of a phase; equal ones are the same objects, which a runtime prepares once."""
        if outputs == 0:
            return ()
        key = outputs, phase
        if key not in self._launches:
            args, layout = self._args[phase], self._layout
            grid, shared = (layout.num_parts, outputs, 1), 8 * layout.capacity
            self._launches[key] = (
                Launch(self._scan, grid, THREADS, args, overlaps=True),
                Launch(self._finish, (outputs, 1, 1), THREADS, args, shared, overlaps=True),
            )
        return self._launches[key]

    def _make_args(self, phase: int) -> OutputsArgs:
        inputs, results = self._inputs, self._results
        return OutputsArgs(
            header=inputs.memory.pointer,
            rows=inputs.memory.pointer + HEADER.itemsize,
            late_edits=inputs.late_memory.pointer,
            late_offsets=inputs.late_memory.pointer + 8,
            masks=inputs.masks_memory.pointer,
            raw=self.raw.pointer,
            edited=self._edited.pointer,
            **{name: memory.pointer for name, memory in self._scratch.items()},
            tokens=results.memory.pointer,
            records=results.records_pointer,
            vocab=self._layout.vocab,
            num_candidates=self._layout.num_candidates,
            capacity=self._layout.capacity,
            phase=phase,
        )

    def _current(self) -> Selection:
        if self._selection is None:
            raise ValueError("no selection was uploaded")
        return self._selection
