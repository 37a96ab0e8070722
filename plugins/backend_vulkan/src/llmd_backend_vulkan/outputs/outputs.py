"""The output rows of one ticket of a stage, from logits to results."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llmd.api import LateEdits, Program, Selection, StageLimits, StepResult
from llmd.api.checks import check_late_edits
from llmd.api.output_checks import check_masks
from llmd.api.step import Float32
from llmd_backend_vulkan.commands import Buffer, Dispatch, Segment, Shader
from llmd_backend_vulkan.memory import Arena, Region, copy
from llmd_backend_vulkan.outputs.inputs import all_edits, pack_selection
from llmd_backend_vulkan.outputs.layout import PART, OutputsLayout
from llmd_backend_vulkan.outputs.results import read_results
from llmd_backend_vulkan.runtime import Recording

_FEWEST_EDITS = 256
_EDIT_WORDS = 3
_THREADS = 64


class Outputs:
    """Logits, edits, candidates and tokens of one ticket, as `llmd.api.candidates.OutputRows` defines them.

    A step calls `begin`. As soon as all edits and masks are known (`is_complete`), `recording` is submitted
    after the head, which writes `raw`. Once it has run, `result` reads the results.
    """

    def __init__(
        self, arena: Arena, region: Region, at: int, layout: OutputsLayout, *, keeps_times: bool = False
    ) -> None:
        """Take memory of the host; that of the device begins at word ``at`` of the region.

        Raises:
            MemoryBudgetError: there is not enough.
        """
        self._arena = arena
        self._region = region
        self._at = at
        self._layout = layout
        self._keeps_times = keeps_times
        runtime = arena.runtime
        self._selection_words = runtime.host(layout.selection_words)
        self._masks = runtime.host(layout.max_outputs * layout.mask_words)
        self.results = runtime.host(layout.results_words)
        """The tokens of the output rows, then their records."""
        self._edits = runtime.host(_EDIT_WORDS * _FEWEST_EDITS)
        self._recordings: dict[int, Recording] = {}
        self._selection: Selection | None = None
        self._late: LateEdits | None = None
        self._needs_edits = self._needs_masks = False

    @property
    def raw(self) -> int:
        """Where the head writes logits: float32 ``[max_outputs][stride]`` in the buffer of the region."""
        return self._place("raw")

    @property
    def buffers(self) -> list[Buffer]:
        """Its memory of the host."""
        return [self._selection_words, self._masks, self.results, self._edits]

    @property
    def is_complete(self) -> bool:
        """Whether all edits and masks are known."""
        return not (self._needs_edits or self._needs_masks)

    def prepare(self) -> None:
        """Prepare the shaders."""
        self._recordings[1] = self._recorded(1)

    def begin(self, selection: Selection) -> None:
        """Take the selection of a step. Nothing of the ticket's earlier step may run any more."""
        self._selection = selection
        self._late = None
        self._needs_edits = selection.late is not None and bool(selection.late.any())
        self._needs_masks = bool(selection.masked.any())

    def apply_edits(self, edits: LateEdits) -> None:
        """Take the edits of the late rows of the selection, as `Stage.apply_edits`.

        Raises:
            ValueError: an array violates the contract.
        """
        check_late_edits(self._layout.vocab, self._current(), edits)
        self._late = edits
        self._needs_edits = False

    def apply_masks(self, masks: NDArray[np.uint32]) -> None:
        """Take the masks of the masked rows of the selection, as `Stage.apply_masks`.

        Raises:
            ValueError: wrong shape or dtype, or late rows still wait for `apply_edits`.
        """
        check_masks(self._layout.vocab, self._current(), masks)
        if self._needs_edits:
            raise ValueError("late rows need apply_edits before apply_masks")
        self._masks.view[: masks.size] = masks.reshape(-1)
        self._needs_masks = False

    def check_complete(self) -> None:
        """Check that all edits and masks are known.

        Raises:
            ValueError: late rows still wait for `apply_edits`, or masked rows for `apply_masks`.
        """
        if self._needs_edits:
            raise ValueError("late rows have no candidates before apply_edits")
        if self._needs_masks:
            raise ValueError("masked rows have no candidates before apply_masks")

    def recording(self, bucket: int) -> Recording:
        """Write the selection to memory, and return the recording for up to ``bucket`` output rows.

        Raises:
            MemoryBudgetError: there are more edits than fit in memory.
        """
        selection = self._current()
        edits = all_edits(selection, self._late)
        self._make_room(edits.words.size)
        self._edits.view[: edits.words.size] = edits.words.reshape(-1)
        pack_selection(self._selection_words.view, self._layout, selection, edits)
        if bucket not in self._recordings:
            self._recordings[bucket] = self._recorded(bucket)
        return self._recordings[bucket]

    def feed(self, work: Buffer, counts: int, token_ids: int, rows: int) -> Dispatch:
        """Return the dispatch that gives another step the tokens of this ticket."""
        return Dispatch(
            Shader("feed"), (work, self.results), (counts, token_ids), (-(-rows // _THREADS), 1, 1)
        )

    def result(self) -> StepResult:
        """Return the results, after the recording has run.

        Raises:
            ValueError: edits or masks are missing.
        """
        self.check_complete()
        return read_results(self.results.view, self._layout, self._current())

    def edited_rows(self, outputs: NDArray[np.int32]) -> Float32:
        """Wait, and return the edited logits ``[len(outputs), vocab]`` of output rows.

        Raises:
            ValueError: edits or masks are missing.
        """
        self.check_complete()
        return self._rows("edited", outputs)

    def raw_rows(self, outputs: NDArray[np.int32]) -> Float32:
        """Wait, and return the raw logits ``[len(outputs), vocab]`` of output rows."""
        return self._rows("raw", outputs)

    def _recorded(self, bucket: int) -> Recording:
        segment = Segment(self._phases(bucket), name="candidates")
        return self._arena.runtime.record_segments([segment], keeps_times=self._keeps_times)

    def _phases(self, bucket: int) -> list[list[Dispatch]]:
        layout, work = self._layout, self._region.buffer
        selection, raw, edited, keys, raw_keys, sums = (
            self._place(name) for name in ("selection", "raw", "edited", "keys", "raw_keys", "sums")
        )
        parts = (-(-layout.vocab // PART), bucket, 1)
        sizes = (layout.stride, layout.vocab, layout.kept, layout.raw_kept, keys, raw_keys, sums)
        results = (layout.max_outputs, layout.record_words)
        finish = (selection, raw, edited, *sizes, *results)
        return [
            [copy(self._selection_words, 0, work, selection, layout.selection_words)],
            [
                Dispatch(
                    Shader("outputs_mask"),
                    (work, self._masks),
                    (selection, raw, edited, layout.stride, layout.vocab),
                    parts,
                )
            ],
            [
                Dispatch(
                    Shader("outputs_edit"),
                    (work, self._edits),
                    (selection, edited, layout.stride),
                    (1, bucket, 1),
                )
            ],
            [Dispatch(Shader("outputs_scan"), (work,), (selection, raw, edited, *sizes), parts)],
            [Dispatch(Shader("outputs_finish"), (work, self.results), finish, (1, bucket, 1))],
        ]

    def _make_room(self, num_words: int) -> None:
        """Take more memory for edits if it is needed."""
        if num_words <= self._edits.num_words:
            return
        runtime = self._arena.runtime
        larger = runtime.host(2 * num_words)
        runtime.free(self._edits)
        self._edits = larger
        self._recordings.clear()

    def _rows(self, name: str, outputs: NDArray[np.int32]) -> Float32:
        layout = self._layout
        found = np.empty((len(outputs), layout.vocab), np.float32)
        first = self._place(name) - self._region.at
        for row, output in enumerate(outputs.tolist()):
            words = self._arena.download(self._region, first + output * layout.stride, layout.vocab)
            found[row] = words.view(np.float32)
        return found

    def _place(self, name: str) -> int:
        return self._region.at + self._at + self._layout.places[name]

    def _current(self) -> Selection:
        if self._selection is None:
            raise ValueError("the ticket has no selection")
        return self._selection


def device_words(program: Program, limits: StageLimits) -> int:
    """Return the words of the device's memory that the output rows of one ticket take."""
    return OutputsLayout(program.vocab_size, limits).places["end"] if program.has_head else 0


def host_words(program: Program, limits: StageLimits) -> int:
    """Return the words of the host's memory that they take."""
    if not program.has_head:
        return 0
    return OutputsLayout(program.vocab_size, limits).host_words + _EDIT_WORDS * _FEWEST_EDITS
