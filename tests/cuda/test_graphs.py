"""Small steps run as captured graphs, and nothing is compiled while steps run."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from llmd.api import DeviceMemoryError, Step
from llmd_backend_cuda import stage as stage_module
from tests.cuda.simulated import NEEDS_COMPILER, SimulatedCard
from tests.plugins.backend_cpu.workbench import select
from tests.plugins.backend_cuda.bench import Bench, allowing, edits, late, one, sequences

pytestmark = NEEDS_COMPILER


@pytest.fixture
def bench() -> Bench:
    return Bench()


def steps_of_sizes() -> list[Step]:
    return [one(12, 0, [0]), one(3, 12, [0]), sequences([(15, 1), (0, 1)], [[0], [1]]), one(20, 0, [2, 3])]


def test_small_steps_run_as_graphs_which_are_captured_once(bench: Bench) -> None:
    bench.card.launched.clear()
    bench.logits(one(1))
    assert bench.card.num_graphs == 1
    bench.logits(one(2, 0, [1]))  # the same ticket memory, another size
    assert bench.card.num_graphs == 2
    bench.logits(one(1, 1, seed=3))
    assert bench.card.num_graphs == 2
    assert bench.card.launched == []


@pytest.mark.parametrize("deferred", [False, True])
def test_graphs_give_the_same_bits_as_launches(
    monkeypatch: pytest.MonkeyPatch,
    deferred: bool,  # noqa: FBT001 - cases
) -> None:
    direct, graphs = Bench(), Bench(SimulatedCard(deferred=deferred))
    for step in steps_of_sizes():
        expected = graphs.logits(step)
        with monkeypatch.context() as changed:
            changed.setattr(stage_module, "LARGEST_GRAPH", 0)
            np.testing.assert_array_equal(direct.logits(step), expected)
    assert direct.card.num_graphs == 0
    assert graphs.card.num_graphs == 4


def test_large_steps_are_launched_one_by_one(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_module, "LARGEST_GRAPH", 8)
    bench.card.launched.clear()
    bench.logits(one(9))
    assert len(bench.card.launched) > 10
    assert bench.card.num_graphs == 0
    bench.card.launched.clear()
    bench.logits(one(8))
    assert bench.card.launched == []


def test_launches_run_one_by_one_if_there_is_no_memory_for_their_graph(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = Bench().logits(one(3))
    tried: list[None] = []

    def capture(_run: Callable[[], None]) -> None:
        tried.append(None)
        raise DeviceMemoryError("no memory is left for a graph")

    monkeypatch.setattr(bench.card, "capture", capture)
    for _ in range(2):
        bench.card.launched.clear()
        np.testing.assert_array_equal(bench.logits(one(3)), expected)
        assert len(bench.card.launched) > 10
    assert len(tried) == 1


def test_no_kernel_is_compiled_after_a_stage_was_made(bench: Bench) -> None:
    """The time limit of a step leaves no time for that."""
    known = set(bench.card.asked)
    stage = bench.stage
    step = msgspec.structs.replace(one(3), copies=np.array([[0, 1, 2]], np.int32))
    selection = msgspec.structs.replace(late(3, [0]), masked=np.array([False, True, False]))
    ticket = stage.submit(step, None, selection)
    stage.apply_edits(ticket, edits([(1, 1.0)]))
    stage.apply_masks(ticket, allowing(3))
    fed = msgspec.structs.replace(one(1, 3), token_ids=np.array([-3], np.int32), feed=ticket)
    stage.wait(stage.submit(fed, None, select(1)), 1.0)
    assert set(bench.card.asked) == known
