"""The recorder records the calls that a schedule makes to a device."""

from __future__ import annotations

import numpy as np

from llmd.testing.conformance import all_cases
from llmd.testing.recorder import Recorder
from llmd.testing.runs import run
from llmd.testing.workload import one_by_one, ragged


def test_records_every_step_with_its_selection_and_masks() -> None:
    case = next(case for case in all_cases() if case.name == "head/plain-edits-masks")
    recorder = Recorder()
    schedule = ragged(case)
    run(recorder, case, schedule)
    assert len(recorder.steps) == len(schedule.steps)
    assert sum(recorded.step.num_rows for recorded in recorder.steps) == sum(len(ids) for ids in case.tokens)
    for recorded in recorder.steps:
        assert recorded.selection is not None
        assert recorded.selection.edit_ids.size
        assert recorded.masks is not None
        assert recorded.hidden is not None
        assert recorded.hidden.shape == (recorded.step.num_rows, case.plan.hidden_size)


def test_records_program_weights_and_limits() -> None:
    case = next(case for case in all_cases() if case.name == "linear/q8")
    recorder = Recorder()
    run(recorder, case, one_by_one(case))
    assert [weight.format for weight in recorder.weights] == [w.format for w in recorder.program.weights]
    assert recorder.weights[0].data.dtype == np.uint8
    assert recorder.limits.max_rows == 1
