"""Checks of what is asked of output rows after `Stage.submit`; backends call them first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llmd.api.step import Selection


def check_masks(vocab_size: int, selection: Selection, masks: NDArray[np.uint32]) -> None:
    """Check the masks of the masked rows of a selection, as `Stage.apply_masks` takes them.

    Raises:
        ValueError: wrong shape or dtype.
    """
    expected = int(np.count_nonzero(selection.masked)), -(-vocab_size // 32)
    if masks.shape != expected or masks.dtype != np.uint32:
        raise ValueError(f"masks are {masks.dtype} {masks.shape}, expected uint32 {expected}")


def check_outputs(selection: Selection, outputs: NDArray[np.int32]) -> None:
    """Check indices of output rows, as `Stage.rows` and `Stage.raw_rows` take them.

    Raises:
        ValueError: the selection has no such row.
    """
    count = selection.num_rows
    if np.any((outputs < 0) | (outputs >= count)):
        raise ValueError(f"output rows {outputs.tolist()} are outside of 0..{count - 1}")
