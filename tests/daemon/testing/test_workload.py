from __future__ import annotations

from llmd.builtin.reference.device import ReferenceDevice
from llmd.testing.plans import TinyModel
from llmd.testing.workload import Workload, all_at_once, one_by_one, ragged, run

TOKENS = ((1, 2, 3, 4, 5) * 8, (6,), (7, 8))


def test_schedules_run_every_row_once() -> None:
    for schedule in (one_by_one(TOKENS), all_at_once(TOKENS), ragged(TOKENS)):
        rows = [0, 0, 0]
        for step in schedule.steps:
            assert len({s for s, _ in step}) == len(step)
            for s, count in step:
                rows[s] += count
        assert rows == [40, 1, 2]


def test_a_ragged_schedule_mixes_prefill_and_decode() -> None:
    steps = ragged(TOKENS).steps
    assert any({count for _, count in step} > {1} for step in steps)


def test_outcomes_are_known_by_sequence_and_position() -> None:
    plan = TinyModel().plan()
    outcome = run(ReferenceDevice(), Workload("w", plan, 0, len(plan.parts), TOKENS), ragged(TOKENS))
    places = {(s, p) for s, ids in enumerate(TOKENS) for p in range(len(ids))}
    assert set(outcome.rows) == set(outcome.picked) == places
