from __future__ import annotations

import numpy as np

from llmd.api import Step
from llmd.engine.steps.batch import select_rows


def test_sizes_follow_from_the_arrays() -> None:
    five = np.arange(5, dtype=np.int32)
    step = Step(five, five, np.array([0, 2, 5], np.int32), (), np.zeros((0, 3), np.int32))
    assert (step.num_rows, step.num_sequences) == (5, 2)
    assert select_rows(five).num_rows == 5
