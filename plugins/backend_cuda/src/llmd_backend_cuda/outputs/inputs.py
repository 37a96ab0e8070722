"""Copy a selection, its late edits and its masks to the device, each in one copy from pinned memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from llmd.api import LateEdits, Selection
from llmd.api.draws import HOST
from llmd_backend_cuda.outputs.layout import (
    AFTER_EDITS,
    AFTER_MASKS,
    EDIT,
    FIRST,
    HEADER,
    ROW,
    Layout,
)
from llmd_backend_cuda.runtime import Memory, Runtime

_Records = NDArray[Any]
"""A structured array."""


class Inputs:
    """The inputs of one ticket, at addresses that do not change.

    The device must have read everything of the ticket's last step before the next `upload`.
    """

    def __init__(self, runtime: Runtime, layout: Layout) -> None:
        """Allocate device memory and pinned memory.

        Raises:
            MemoryBudgetError: there is not enough.
        """
        self._runtime = runtime
        self._layout = layout
        self.memory = runtime.allocate(layout.inputs_bytes())
        self.late_memory = runtime.allocate(layout.late_bytes())
        self.masks_memory = runtime.allocate(layout.masks_bytes())
        self._pinned = runtime.pinned(layout.inputs_bytes())
        self._late_pinned = runtime.pinned(layout.late_bytes())
        self._masks_pinned = runtime.pinned(layout.masks_bytes())
        self._header = self._pinned[: HEADER.itemsize].view(HEADER)
        last = HEADER.itemsize + layout.max_outputs * ROW.itemsize
        self._rows = self._pinned[HEADER.itemsize : last].view(ROW)
        self._rows["unused"] = 0
        self._more_edits: Memory | None = None
        self._more_late_edits: Memory | None = None

    def upload(self, selection: Selection) -> None:
        """Copy a selection."""
        count = selection.num_rows
        first = HEADER.itemsize + count * ROW.itemsize
        self._header["num_rows"] = count
        self._header["raw_top"] = min(selection.raw_top, self._layout.vocab)
        self._header["edits"] = self.memory.pointer + first
        _write_rows(self._rows[:count], selection)
        end = first
        self._more_edits = None
        if selection.edit_ids.size:
            edits = selection.edit_ids, selection.edit_factors, selection.edit_biases
            end = _write_edits(self._pinned, first, *edits)
            if end == first:
                self._more_edits = self._upload_many(*edits)
                self._header["edits"] = self._more_edits.pointer
        self._runtime.upload(self.memory, 0, self._pinned[:end])

    def upload_edits(self, edits: LateEdits) -> None:
        """Copy the edits of late rows."""
        first = 8 + edits.offsets.nbytes
        self._late_pinned[8:first] = edits.offsets.view(np.uint8)
        end = _write_edits(self._late_pinned, first, edits.ids, edits.factors, edits.biases)
        address = self.late_memory.pointer + first
        self._more_late_edits = None
        if end == first and edits.ids.size:
            self._more_late_edits = self._upload_many(edits.ids, edits.factors, edits.biases)
            address = self._more_late_edits.pointer
        self._late_pinned[:8].view(np.uint64)[0] = address
        self._runtime.upload(self.late_memory, 0, self._late_pinned[:end])

    def upload_masks(self, masks: NDArray[np.uint32]) -> None:
        """Copy masks ``[masked rows, mask words]``."""
        pinned = self._masks_pinned[: masks.nbytes]
        pinned.view(np.uint32)[:] = masks.reshape(-1)
        self._runtime.upload(self.masks_memory, 0, pinned)

    def _upload_many(
        self, ids: NDArray[np.int32], factors: NDArray[np.float32], biases: NDArray[np.float32]
    ) -> Memory:
        """Copy edits for which there is no room to memory of their own.

        Raises:
            MemoryBudgetError: there is not enough memory.
        """
        packed = np.empty(ids.size * EDIT.itemsize, np.uint8)
        _write_edits(packed, 0, ids, factors, biases)
        memory = self._runtime.allocate(packed.nbytes)
        self._runtime.upload(memory, 0, packed)
        return memory


def _write_edits(
    buffer: NDArray[np.uint8],
    first: int,
    ids: NDArray[np.int32],
    factors: NDArray[np.float32],
    biases: NDArray[np.float32],
) -> int:
    """Write edits from byte ``first`` of a buffer on; return the end, or ``first`` if there is no room."""
    end = first + ids.size * EDIT.itemsize
    if end > buffer.size:
        return first
    edits = buffer[first:end].view(EDIT)
    edits["id"], edits["factor"], edits["bias"] = ids, factors, biases
    return end


def _write_rows(rows: _Records, selection: Selection) -> None:
    """Write what the kernels need to know of each output row."""
    draws = selection.draws
    if draws is None:
        rows["table"] = 1.0
        rows["seed"] = rows["position"] = rows["choice"] = 0
        rows["kind"] = HOST
    else:
        rows["table"] = draws.table
        rows["seed"] = draws.seeds
        rows["position"] = draws.positions
        rows["choice"] = draws.choices
        rows["kind"] = draws.kinds
    rows["record"] = _places(described_rows(selection))
    rows["temperature"] = selection.temperatures
    rows["target"] = selection.targets
    rows["first_edit"] = selection.edit_offsets[:-1]
    rows["num_edits"] = np.diff(selection.edit_offsets)
    rows["late"] = rows["mask"] = -1
    rows["phase"] = FIRST
    if selection.late is not None and selection.late.any():
        rows["late"] = _places(selection.late)
        rows["phase"][selection.late] = AFTER_EDITS
    if selection.masked.any():
        rows["mask"] = _places(selection.masked)
        rows["phase"][selection.masked] = AFTER_MASKS


def described_rows(selection: Selection) -> NDArray[np.bool_]:
    """Return the rows ``[N]`` of which more than the token is wanted."""
    if selection.draws is None:
        return np.ones(selection.num_rows, np.bool_)
    return ~selection.draws.token_only


def _places(chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Number the chosen rows; -1 for the others."""
    return np.where(chosen, np.cumsum(chosen) - 1, -1)
