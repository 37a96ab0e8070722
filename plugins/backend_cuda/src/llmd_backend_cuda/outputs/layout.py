"""Memory that the kernels after the logits read and write, mirrored from ``kernels/outputs.cuh``."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

import msgspec
import numpy as np

from llmd.api import MAX_RAW_TOP, StageLimits
from llmd.api.draws import NUM_COLUMNS

THREADS = 256
"""Threads of a block of all these kernels."""
PART = 2048
"""Logits that a block scans."""
GROUP = 32
"""Logits of a group with consecutive ids, of which the best one is kept."""
MAX_CANDIDATES = 128
"""Most candidates of a row that the kernels select."""
MAX_KEYS = 4096
"""Most keys of tokens in the shared memory of a block."""
EDITS_PER_ROW = 256
"""Edits that there is memory for, for each output row. With more of them, memory is taken for that step."""
ALIGNMENT = 256
"""Bytes."""
RECORD_START = 8
"""Words of a record before its lists: the sums, of which two are unused."""

HEADER = np.dtype([("num_rows", "<i4"), ("raw_top", "<i4"), ("edits", "<u8")])
"""``struct OutputsHeader``; ``edits`` is an address."""

ROW = np.dtype(
    [
        ("table", "<f8", NUM_COLUMNS),
        ("seed", "<u8"),
        ("position", "<u4"),
        ("choice", "<u4"),
        ("temperature", "<f4"),
        ("target", "<i4"),
        ("kind", "<i4"),
        ("phase", "<i4"),
        ("record", "<i4"),
        ("first_edit", "<i4"),
        ("num_edits", "<i4"),
        ("late", "<i4"),
        ("mask", "<i4"),
        ("unused", "<i4"),
    ]
)
"""``struct OutputRow``."""

EDIT = np.dtype([("id", "<i4"), ("factor", "<f4"), ("bias", "<f4")])
"""``struct Edit``."""

PART_SUMS_BYTES = 48
"""``struct PartSums``."""

FIRST, AFTER_EDITS, AFTER_MASKS = range(3)
"""Phases: a row is computed in the first one in which its edits and masks are known."""


class OutputsArgs(ctypes.Structure):
    """``struct OutputsArgs``."""

    _fields_ = (
        ("header", ctypes.c_void_p),
        ("rows", ctypes.c_void_p),
        ("late_edits", ctypes.c_void_p),
        ("late_offsets", ctypes.c_void_p),
        ("masks", ctypes.c_void_p),
        ("raw", ctypes.c_void_p),
        ("edited", ctypes.c_void_p),
        ("group_best", ctypes.c_void_p),
        ("raw_group_best", ctypes.c_void_p),
        ("parts", ctypes.c_void_p),
        ("tokens", ctypes.c_void_p),
        ("records", ctypes.c_void_p),
        ("vocab", ctypes.c_int32),
        ("num_candidates", ctypes.c_int32),
        ("capacity", ctypes.c_int32),
        ("phase", ctypes.c_int32),
    )


class Layout(msgspec.Struct, frozen=True):
    """Sizes for a vocabulary and the limits of a stage."""

    vocab: int
    max_outputs: int
    num_candidates: int
    """At most the vocabulary."""
    capacity: int
    """Keys in the shared memory of a block."""

    @classmethod
    def of(cls, vocab_size: int, limits: StageLimits) -> Layout:
        """Return the layout.

        Raises:
            ValueError: the kernels cannot select that number of candidates, or of logits.
        """
        candidates = min(limits.num_candidates, vocab_size)
        groups = -(-vocab_size // GROUP)
        wanted = min(max(candidates, min(MAX_RAW_TOP, vocab_size)), groups)
        keys = max(THREADS, wanted * GROUP, wanted * -(-groups // THREADS), min(vocab_size, 2048))
        capacity = 1 << (keys - 1).bit_length()
        if candidates > MAX_CANDIDATES or capacity > MAX_KEYS:
            raise ValueError(
                f"{candidates} candidates of {vocab_size} logits are too many: the kernels select at most"
                f" {MAX_CANDIDATES}, and fewer of very large vocabularies"
            )
        return cls(vocab_size, limits.max_outputs, candidates, capacity)

    @property
    def num_parts(self) -> int:
        """Parts of a row of logits."""
        return -(-self.vocab // PART)

    @property
    def mask_words(self) -> int:
        """Words of a mask, which is also the number of groups."""
        return -(-self.vocab // GROUP)

    @property
    def max_edits(self) -> int:
        """Edits that there is memory for."""
        return self.max_outputs * EDITS_PER_ROW

    @property
    def record_words(self) -> int:
        """Words of the sums and lists of a row: ids, edited, raw, ids and logits of the best raw ones."""
        return RECORD_START + 3 * self.num_candidates + 2 * MAX_RAW_TOP

    @property
    def token_bytes(self) -> int:
        """Bytes of the tokens, which precede the records."""
        return round_up(4 * self.max_outputs)

    def inputs_bytes(self) -> int:
        """Return the bytes of a selection: header, rows, edits."""
        return round_up(HEADER.itemsize + self.max_outputs * ROW.itemsize + self.max_edits * EDIT.itemsize)

    def late_bytes(self) -> int:
        """Return the bytes of late edits: their address, their offsets, and the edits."""
        return round_up(8 + 4 * (self.max_outputs + 1) + self.max_edits * EDIT.itemsize)

    def masks_bytes(self) -> int:
        """Return the bytes of the masks of all rows."""
        return round_up(4 * self.max_outputs * self.mask_words)

    def results_bytes(self) -> int:
        """Return the bytes of tokens and records."""
        return self.token_bytes + round_up(4 * self.max_outputs * self.record_words)

    def device_bytes(self) -> Mapping[str, int]:
        """Return the bytes of everything in the device's memory, by field of `OutputsArgs` or name."""
        logits = round_up(4 * self.max_outputs * self.vocab)
        groups = round_up(4 * self.max_outputs * self.mask_words)
        return {
            "inputs": self.inputs_bytes(),
            "late": self.late_bytes(),
            "masks": self.masks_bytes(),
            "raw": logits,
            "edited": logits,
            "group_best": groups,
            "raw_group_best": groups,
            "parts": round_up(self.max_outputs * self.num_parts * PART_SUMS_BYTES),
            "results": self.results_bytes(),
        }


def round_up(num_bytes: int) -> int:
    """Return a multiple of `ALIGNMENT`, at least one."""
    return max(-(-num_bytes // ALIGNMENT), 1) * ALIGNMENT
