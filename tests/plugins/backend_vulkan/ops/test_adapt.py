"""Adapters of the rows of a step, in each format, and steps in which no row has one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import pytest

from llmd.api import ModelPlan, Program, StageLimits
from llmd.api.step import Float32
from llmd.models.lowering import lower
from llmd.testing.adapter_cases import adapted_model
from llmd.testing.plans import TinyModel
from llmd.testing.sources import RandomSource
from llmd_backend_vulkan.device import VulkanDevice
from llmd_backend_vulkan.ops.adapt import CHANGES, MIDDLE, adapt_words, change_places
from llmd_backend_vulkan.programs import PATTERNS, body_phases
from llmd_backend_vulkan.stage import VulkanStage
from tests.plugins.backend_vulkan.test_stage import last_row, step_of

LIMITS = StageLimits(max_rows=20, max_sequences=2, max_outputs=1, kv_dtype="f32", max_adapters=2)
NAMES = ("adapt/bf16", "adapt/value-is-kept", "adapt/wide")
SLOW = ("adapt/f32", "adapt/f16", "adapt/q8-activations-f32", "adapt/alike", "adapt/rows-of-one-tensor")


@pytest.mark.parametrize(
    "name", [*NAMES, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in SLOW)]
)
def test_results_are_those_of_the_reference_in_any_batch(check: Callable[[str], None], name: str) -> None:
    check(name)


def program(plan: ModelPlan, streamed: tuple[int, ...] = ()) -> Program:
    return lower(
        plan,
        0,
        len(plan.parts),
        format_of=lambda _kind, _ref: "f32",
        activations="f32",
        patterns=PATTERNS,
        streamed=streamed,
    )


def opened(device: VulkanDevice, of: Program) -> VulkanStage:
    return device.load(of, RandomSource(), lambda _done, _total: None).stage({0: 2, 1: 2}, LIMITS)


def shaders(stage: VulkanStage, *, adapted: bool) -> list[list[str]]:
    """Return the names of the shaders of each phase of a small step."""
    ((_, phases),) = body_phases(stage._memory.context(4, 0, stage._weights, adapted=adapted))
    return [[one.shader.name for one in phase] for phase in phases]


def logits(stage: VulkanStage, adapters: Sequence[int] | None) -> Float32:
    """Return what a step of one sequence computes with an adapter."""
    numbers = None if adapters is None else np.array(adapters, np.int32)
    step = msgspec.structs.replace(step_of([3, 1, 4, 1, 5], 0, [1]), adapters=numbers)
    ticket = stage.submit(step, None, last_row(5))
    stage.wait(ticket, 60.0)
    rows = stage.raw_rows(ticket, np.zeros(1, np.int32)).copy()
    stage.release(ticket)
    return rows


def test_steps_without_adapters_run_what_the_plain_model_does(device: VulkanDevice) -> None:
    stages = [opened(device, program(plan)) for plan in (TinyModel().plan(), adapted_model())]
    plain, mine = stages
    expected = shaders(plain, adapted=False)
    assert shaders(mine, adapted=False) == expected
    with_adapters = [name for phase in shaders(mine, adapted=True) for name in phase]
    num_ops = len(change_places(program(adapted_model())))
    assert with_adapters.count("adapt_outputs") == with_adapters.count("adapt_middle") == num_ops
    none, of_plain = logits(mine, None), logits(plain, None)
    np.testing.assert_array_equal(none, of_plain)
    np.testing.assert_array_equal(logits(mine, [-1]), of_plain)
    assert not np.allclose(logits(mine, [0]), none, rtol=1e-2)
    assert not np.allclose(logits(mine, [1]), logits(mine, [0]), rtol=1e-2)
    for stage in stages:
        stage.close()


def test_streamed_layers_have_their_adapters(device: VulkanDevice) -> None:
    resident, streamed = (opened(device, program(adapted_model(), parts)) for parts in ((), (1, 2, 4)))
    for adapter in (0, 1):
        np.testing.assert_array_equal(logits(streamed, [adapter]), logits(resident, [adapter]))
    for stage in (resident, streamed):
        stage.close()


def test_memory_is_that_of_all_changes_and_of_the_largest_op() -> None:
    adapted, plain = program(adapted_model()), program(TinyModel().plan())
    words = adapt_words(adapted, LIMITS)
    # 20 rows of two adapters are at most four items of 8 rows; 27 ranks: of queries, keys and values.
    assert words[MIDDLE] == 4 * 8 * 27
    places = [*change_places(adapted).values(), words[CHANGES]]
    assert places == sorted(set(places))
    assert set(adapt_words(plain, LIMITS).values()) == {0}
