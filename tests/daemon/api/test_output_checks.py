from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from llmd.api import Selection
from llmd.api.output_checks import check_masks, check_outputs
from llmd.engine.steps.batch import select_rows


def selection_of(*masked: bool) -> Selection:
    rows = np.arange(len(masked), dtype=np.int32)
    return msgspec.structs.replace(select_rows(rows), masked=np.array(masked, np.bool_))


def test_masks_have_a_row_for_each_masked_row_and_a_bit_for_each_token() -> None:
    chosen = selection_of(True, False, True)
    check_masks(40, chosen, np.zeros((2, 2), np.uint32))
    wrongs: list[Any] = [np.zeros((3, 2), np.uint32), np.zeros((2, 1), np.uint32), np.zeros((2, 2), np.int32)]
    for wrong in wrongs:
        with pytest.raises(ValueError, match=r"masks are .*, expected uint32 \(2, 2\)"):
            check_masks(40, chosen, wrong)


@pytest.mark.parametrize("outputs", [[-1], [0, 3]])
def test_only_output_rows_of_the_selection_are_read(outputs: list[int]) -> None:
    check_outputs(selection_of(False, False, False), np.array([0, 2], np.int32))
    with pytest.raises(ValueError, match=r"are outside of 0\.\.2"):
        check_outputs(selection_of(False, False, False), np.array(outputs, np.int32))
