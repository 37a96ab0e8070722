"""Attention to a window and to vectors that stand for several tokens, all or chosen ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from llmd_backend_vulkan.commands import Dispatch, Shader
from llmd_backend_vulkan.memory import Arena

NAMES = ("merge_attention/few-f32", "merge_attention/chosen-f16")
SLOW = (
    "merge_attention/all-f32",
    "merge_attention/all-f16",
    "merge_attention/all-bf16",
    "merge_attention/few-f16",
    "merge_attention/few-bf16",
    "merge_attention/chosen-f32",
    "merge_attention/chosen-bf16",
    "merge_attention/each",
    "merge_attention/long",
    "merge_attention/long-chosen",
)
HEADS, DIM = 3, 5


@pytest.mark.parametrize(
    "name", [*NAMES, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in SLOW)]
)
def test_results_are_those_of_the_reference_in_any_batch(check: Callable[[str], None], name: str) -> None:
    check(name)


def test_either_set_of_positions_may_be_empty(arena: Arena) -> None:
    """Of three heads, the first sees only one set, the second only the other, the last none."""
    random = np.random.default_rng(1)
    a, b = random.standard_normal((2, HEADS, DIM)).astype(np.float32)
    sums = np.array([[90.0, -np.inf, -np.inf], [-np.inf, -90.0, -np.inf]], np.float32)
    a[1:], b[0], b[2] = 0.0, 0.0, 0.0
    stride, sums_stride = 16, 4
    work = arena.take(64 + 3 * stride)
    arena.upload(work, 0, np.array([1], np.uint32))
    arena.upload(work, 8, sums[0])
    arena.upload(work, 12, sums[1])
    arena.upload(work, 64, a.reshape(-1))
    arena.upload(work, 64 + stride, b.reshape(-1))
    at = work.at
    constants = (
        at,
        at + 64,
        at + 64 + stride,
        stride,
        at + 8,
        at + 12,
        sums_stride,
        at + 64 + 2 * stride,
        DIM,
    )
    arena.runtime.run([[Dispatch(Shader("merge_attention"), (work.buffer,), constants, (HEADS, 1, 1))]])
    found = arena.download(work, 64 + 2 * stride, HEADS * DIM).view(np.float32).reshape(HEADS, DIM)
    np.testing.assert_array_equal(found, [a[0], b[1], np.zeros(DIM, np.float32)])
