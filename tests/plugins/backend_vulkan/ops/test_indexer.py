"""Chosen positions are those of the reference, whatever the scores are and however rows are grouped."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from msgspec import structs
from numpy.typing import NDArray

from llmd.api import DeviceOptions, Indexer, StageLimits
from llmd.builtin.architectures import deepseek_v4, deepseek_v32
from llmd.models.lowering import lower
from llmd.testing.conformance import cases_for
from llmd.testing.runs import LoadedWorkload
from llmd.testing.workload import all_at_once
from llmd_backend_vulkan.commands import Dispatch, Shader
from llmd_backend_vulkan.device import VulkanDevice, describe
from llmd_backend_vulkan.memory import Arena
from llmd_backend_vulkan.ops import indexer as indexer_ops
from llmd_backend_vulkan.ops.indexer import SCORES, indexer_words, most_vectors
from llmd_backend_vulkan.vulkan import PhysicalDevice
from tests.golden.models.catalog import tiny_model

NAMES = ("indexer/even-f32", "indexer/odd-f16", "indexer/odd-bf16", "indexer/all-f32", "indexer/equal-scores")
SLOW = (
    "indexer/odd-f32",
    "indexer/even-f16",
    "indexer/even-bf16",
    "indexer/shared",
    "indexer/long-partitions-f32",
)


@pytest.mark.parametrize(
    "name", [*NAMES, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in SLOW)]
)
def test_positions_are_those_of_the_reference_in_any_batch(check: Callable[[str], None], name: str) -> None:
    check(name)


@pytest.mark.parametrize(("limit", "value"), [("_SCRATCH_WORDS", 64 * 5), ("MOST_WORK", 64.0 * 8 * 16 * 5)])
def test_rows_are_scored_in_groups(
    physical: PhysicalDevice, monkeypatch: pytest.MonkeyPatch, limit: str, value: float
) -> None:
    """As many as fit into memory, and into a submission if the context is full."""
    case = next(case for case in cases_for(describe(physical)) if case.name == "indexer/even-f32")
    case = structs.replace(case, plan=structs.replace(case.plan, context_len=64))
    rows = []
    for _ in range(2):
        with LoadedWorkload(VulkanDevice(physical, DeviceOptions()), case) as loaded:
            rows.append(loaded.run(all_at_once(case)).rows)
        monkeypatch.setattr(indexer_ops, limit, value)
    assert all(np.array_equal(rows[0][place], rows[1][place]) for place in rows[0])


def test_scores_take_memory_for_some_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = deepseek_v32.plan(tiny_model("deepseek-v32").config, 3000)
    program = lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32", activations="f32")
    limits = StageLimits(max_rows=400, max_sequences=2, max_outputs=1)
    assert indexer_words(program, limits) == {SCORES: 400 * 3008}
    monkeypatch.setattr(indexer_ops, "_SCRATCH_WORDS", 50 * 3008 + 7)
    assert indexer_words(program, limits) == {SCORES: 50 * 3008}
    monkeypatch.setattr(indexer_ops, "_SCRATCH_WORDS", 0)
    assert indexer_words(program, limits) == {SCORES: 3008}


def test_vectors_that_stand_for_several_tokens_are_fewer() -> None:
    plan = deepseek_v4.plan(tiny_model("deepseek-v4").config, 3000)
    program = lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32", activations="f32")
    limits = StageLimits(max_rows=400, max_sequences=2, max_outputs=1)
    assert indexer_words(program, limits) == {SCORES: 400 * 768}
    assert {most_vectors(program, one.op) for one in program.ops if isinstance(one.op, Indexer)} == {750}


def chosen(scores: NDArray[np.float32], top_k: int) -> NDArray[np.integer]:
    """Return the positions of the highest scores, of equal ones the later, ascending."""
    order = np.lexsort((np.arange(len(scores)), scores))
    return np.sort(order[len(scores) - top_k :])


KINDS: dict[str, Callable[[np.random.Generator, int], NDArray[np.generic]]] = {
    "normal": lambda random, count: random.standard_normal(count),
    "few values": lambda random, count: random.integers(-2, 3, count),
    "zeros of both signs": lambda random, count: np.where(random.random(count) < 0.5, 0.0, -0.0),
    "equal in 8 bits": lambda random, count: 1.0 + random.integers(0, 1 << 22, count) * 2.0**-23,
    "equal in 24 bits": lambda random, count: -1.5 - random.integers(0, 1 << 7, count) * 2.0**-23,
    "all sizes": lambda random, count: (
        random.choice([-1, 1], count) * 2.0 ** random.integers(-126, 127, count)
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_choice_is_exact_for_all_kinds_of_scores(arena: Arena, kind: str) -> None:
    random, rows = np.random.default_rng(2), (3000, 2048, 1025, 64, 60, 7)
    top_k, stride = 60, 3008
    scores = np.full((len(rows), stride), np.nan, np.float32)
    for row, count in enumerate(rows):
        scores[row, :count] = KINDS[kind](random, count)
    work = arena.take(64 + scores.size + len(rows) * top_k)
    arena.upload(work, 0, np.array([1 + len(rows), 0, *(count - 1 for count in rows)], np.uint32))
    arena.upload(work, 64, scores)
    out = 64 + scores.size
    constants = (work.at, work.at + 1, work.at + 64, stride, work.at + out - top_k, top_k, 1, top_k)
    dispatch = Dispatch(Shader("choose_positions"), (work.buffer,), constants, (len(rows) + 3, 1, 1))
    arena.runtime.run([[dispatch]])
    found = arena.download(work, out, len(rows) * top_k).view(np.float32).reshape(-1, top_k)
    for row, count in enumerate(rows[:5]):
        np.testing.assert_array_equal(found[row], chosen(scores[row, :count] + np.float32(0), top_k))
    assert found[5].tolist() == [*range(7), *[-1] * (top_k - 7)]
