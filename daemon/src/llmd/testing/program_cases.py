"""Workloads of several ops: each part of the small model, and the whole of it in every format and without its head."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from llmd.api import Format, KVDtype
from llmd.models.headless import without_head
from llmd.testing.plans import TinyModel
from llmd.testing.workload import Workload

# Whole programs in f32 arithmetic; with 16-bit KV a value may round the other way; a q8 activation likewise.
_BOUNDS: dict[tuple[Format, KVDtype], float] = {
    ("f32", "f32"): 1e-9,
    ("f16", "f32"): 1e-9,
    ("bf16", "f32"): 1e-9,
    ("f32", "f16"): 1e-6,
    ("q8", "f32"): 1e-4,
}


def part_cases() -> Iterator[Workload]:
    """Yield each part of the small model alone."""
    plan = TinyModel().plan()
    for index, part in enumerate(plan.parts):
        yield Workload(f"part/{part.name}", plan, index, index + 1, _tokens(plan.vocab_size), max_nmse=1e-9)


def program_cases() -> Iterator[Workload]:
    """Yield the whole small model in every format, with and without a window."""
    for window in (20, None):
        plan = TinyModel(window=window).plan()
        for (fmt, kv_dtype), bound in _BOUNDS.items():
            name = f"program/{'window' if window else 'full'}-{fmt}-kv-{kv_dtype}"
            tokens = _tokens(plan.vocab_size)
            yield Workload(name, plan, 0, len(plan.parts), tokens, fmt, kv_dtype, edits=True, max_nmse=bound)
    plan = without_head(TinyModel().plan())
    yield Workload("program/headless", plan, 0, len(plan.parts), _tokens(plan.vocab_size), max_nmse=1e-9)


def _tokens(vocab_size: int) -> tuple[tuple[int, ...], ...]:
    draw = np.random.default_rng(3)
    return tuple(tuple(draw.integers(0, vocab_size, n).tolist()) for n in (70, 5, 33))
