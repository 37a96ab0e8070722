"""The choice among experts: scores, groups, ties, and numbers that are none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from llmd_backend_vulkan.commands import Dispatch, Shader
from llmd_backend_vulkan.context import NONE, float_word
from llmd_backend_vulkan.memory import Arena

NAMES = (
    "router/softmax",
    "router/bias-scale",
    "router/gains",
    "router/groups",
    "router/bf16",
    "router/given",
)
SLOW = (
    "router/softmax-scores",
    "router/one",
    "router/all",
    "router/sigmoid",
    "router/sqrt-softplus",
    "router/f16",
    "router/largest-groups",
)
EXPERTS, TOP_K = 130, 5


@pytest.mark.parametrize(
    "name", [*NAMES, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in SLOW)]
)
def test_weights_are_those_of_the_reference_in_any_batch(check: Callable[[str], None], name: str) -> None:
    check(name)


def chosen(arena: Arena, logits: NDArray[np.float32], groups: int = 1) -> NDArray[np.float32]:
    """Return the weights for rows of logits whose sigmoids are the scores; of two groups, one is chosen."""
    rows = len(logits)
    count, stride = 0, -(-EXPERTS // 4) * 4
    places = 64, 64 + rows * stride
    work = arena.take(64 + 2 * rows * stride)
    arena.upload(work, count, np.array([rows], np.uint32))
    padded = np.zeros((rows, stride), np.float32)
    padded[:, :EXPERTS] = logits
    arena.upload(work, places[0], padded)
    constants = (
        work.at, work.at + places[0], stride, work.at + places[1], stride, EXPERTS, TOP_K, groups, 1, NONE, NONE,
        NONE, 0, float_word(1.0),
    )  # fmt: skip
    buffers = (work.buffer,) * 3
    arena.runtime.run([[Dispatch(Shader("router", (1, 1, 1, 0, 0, 0)), buffers, constants, (rows, 1, 1))]])
    found = arena.download(work, places[1], rows * stride).view(np.float32).reshape(rows, stride)
    return found[:, :EXPERTS]


def test_of_equal_experts_the_first_are_used(arena: Arena) -> None:
    logits = np.zeros((2, EXPERTS), np.float32)
    logits[1, 70:77] = 1.0
    logits[0, ::2] = -0.0
    found = chosen(arena, logits)
    assert np.flatnonzero(found[0]).tolist() == [0, 1, 2, 3, 4]
    assert np.flatnonzero(found[1]).tolist() == [70, 71, 72, 73, 74]
    np.testing.assert_allclose(found[0, :5], 0.2, rtol=1e-6)


def test_what_is_not_a_number_is_not_chosen(arena: Arena) -> None:
    logits = np.random.default_rng(1).standard_normal((2, EXPERTS)).astype(np.float32)
    logits[0] = np.nan
    best = int(np.argmax(logits[1]))
    logits[1, best] = np.nan
    found = chosen(arena, logits)
    assert not found[0].any()
    assert np.count_nonzero(found[1]) == TOP_K
    assert found[1, best] == 0.0


def test_of_equal_groups_the_first_is_used(arena: Arena) -> None:
    logits = np.zeros((2, EXPERTS), np.float32)
    logits[1, [65, 66]] = 0.5
    found = chosen(arena, logits, groups=2)
    assert np.flatnonzero(found[0]).tolist() == [0, 1, 2, 3, 4]
    assert np.flatnonzero(found[1]).tolist() == [65, 66, 67, 68, 69]
