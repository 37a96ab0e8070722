from __future__ import annotations

import msgspec

from llmd.api import HIDDEN, EncoderAttention, Part
from llmd.testing.plans import TinyModel
from llmd.testing.workload import Workload, all_at_once, edge_places, edges_alone, one_by_one, ragged

PLAN = TinyModel().plan()
TOKENS = ((1, 2, 3, 4, 5) * 8, (6,), (7, 8))
WORKLOAD = Workload("w", PLAN, 0, len(PLAN.parts), TOKENS)


def test_schedules_run_every_row_once() -> None:
    for schedule in (one_by_one(WORKLOAD), edges_alone(WORKLOAD), all_at_once(WORKLOAD), ragged(WORKLOAD)):
        rows = [0, 0, 0]
        for step in schedule.steps:
            assert len({s for s, _ in step}) == len(step)
            for s, count in step:
                rows[s] += count
        assert rows == [40, 1, 2]


def test_rows_at_the_edges_of_blocks_run_alone() -> None:
    done, alone = [0, 0, 0], set()
    for step in edges_alone(WORKLOAD).steps:
        ((s, count),) = step
        alone |= {(s, done[s])} if count == 1 else set()
        done[s] += count
    assert alone == {*((0, p) for p in (0, 15, 16, 31, 32, 39)), (1, 0), (2, 0), (2, 1)}
    assert sorted(alone) == edge_places(WORKLOAD)


def test_rows_that_were_begun_take_one_step_and_the_others_are_run_as_ever() -> None:
    begun = msgspec.structs.replace(WORKLOAD, begun=20)
    for schedule in (one_by_one(begun), edges_alone(begun), ragged(begun)):
        assert schedule.steps[0] == ((0, 20),)
        assert sum(count for step in schedule.steps for s, count in step if s == 0) == 40
    assert edge_places(begun) == [(0, 31), (0, 32), (0, 39), (1, 0), (2, 0), (2, 1)]


def test_a_ragged_schedule_mixes_prefill_and_decode() -> None:
    steps = ragged(WORKLOAD).steps
    assert any({count for _, count in step} > {1} for step in steps)


def test_sequences_that_look_both_ways_are_never_cut() -> None:
    ops = (EncoderAttention(HIDDEN, HIDDEN, HIDDEN, HIDDEN, 4, 10, 0.3),)
    plan = msgspec.structs.replace(PLAN, parts=(Part("encoder", "mixer", 0, ops), *PLAN.parts[1:]))
    workload = msgspec.structs.replace(WORKLOAD, plan=plan)
    assert sorted(one_by_one(workload).steps) == [((0, 40),), ((1, 1),), ((2, 2),)]
    assert all_at_once(workload).steps == (((0, 40), (1, 1), (2, 2)),)
    assert len(ragged(workload).steps) > 1
