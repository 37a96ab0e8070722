from __future__ import annotations

from typing import Any

import pytest

from llmd.api import PluginError
from llmd.builtin.reference.device import ReferenceDevice
from llmd.testing.plans import TinyModel
from llmd.testing.recorder import Recorder
from llmd.testing.runs import run
from llmd.testing.workload import Workload, one_by_one, ragged

PLAN = TinyModel().plan()
TOKENS = ((1, 2, 3, 4, 5) * 8, (6,), (7, 8))
WORKLOAD = Workload("w", PLAN, 0, len(PLAN.parts), TOKENS)


def test_outcomes_are_known_by_sequence_and_position() -> None:
    outcome = run(ReferenceDevice(), WORKLOAD, ragged(WORKLOAD))
    places = {(s, p) for s, ids in enumerate(TOKENS) for p in range(len(ids))}
    assert set(outcome.rows) == set(outcome.picked) == places


def test_states_are_left_in_the_slot_that_was_read_and_in_another() -> None:
    plan = TinyModel(hybrid=True).plan()
    workload = Workload("w", plan, 0, len(plan.parts), ((1, 2, 3, 4, 5), (6, 7)))
    recorder = Recorder()
    run(recorder, workload, one_by_one(workload))
    slots = [tuple(recorded.step.block_tables[2][0].tolist()) for recorded in recorder.steps]
    first, second = slots[0][1], slots[2][1]
    assert slots[:5] == [(-1, first), (first, first), (first, second), (second, second), (second, first)]
    assert len({first, second, slots[5][1]}) == 3
    assert slots[5:] == [(-1, slots[5][1]), (slots[5][1],) * 2]


@pytest.mark.parametrize("calls", [[(1, 2)], [(2, 2), (2, 2)]])
def test_progress_of_a_load_counts_bytes(
    monkeypatch: pytest.MonkeyPatch, calls: list[tuple[int, int]]
) -> None:
    device = ReferenceDevice()
    load = device.load

    def loading(program: Any, tensors: Any, progress: Any, have: Any = ()) -> Any:
        for call in calls:
            progress(*call)
        return load(program, tensors, lambda _done, _total: None, have)

    monkeypatch.setattr(device, "load", loading)
    with pytest.raises(PluginError, match="the progress of a load"):
        run(device, WORKLOAD, ragged(WORKLOAD))
