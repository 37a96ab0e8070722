"""Workloads of several ops: parts of the small model, all of it in every format, and the small encoder."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from llmd.api import Format, KVDtype
from llmd.models.headless import without_head
from llmd.testing.encoder_plan import TinyEncoder
from llmd.testing.plans import TinyModel
from llmd.testing.workload import Workload

# Bounds for whole programs in f32 arithmetic. Rounded KV and q8 activations may round the other way.
_BOUNDS: dict[tuple[Format, KVDtype], float] = {
    ("f32", "f32"): 1e-9,
    ("f16", "f32"): 1e-9,
    ("bf16", "f32"): 1e-9,
    ("f32", "f16"): 1e-6,
    ("f32", "bf16"): 1e-5,
    ("f32", "int8"): 2e-5,
    ("f32", "int4"): 1e-2,
    ("q8", "f32"): 1e-4,
}


def part_cases() -> Iterator[Workload]:
    """Yield each part of the small model as a workload."""
    plan = TinyModel().plan()
    for index, part in enumerate(plan.parts):
        yield Workload(f"part/{part.name}", plan, index, index + 1, _tokens(plan.vocab_size), max_nmse=1e-9)


def program_cases() -> Iterator[Workload]:
    """Yield the small model in every format, with and without a window, and the small encoder.

    The small model also runs with draws, and without a head: plain and with taps.
    """
    for window in (20, None):
        plan = TinyModel(window=window).plan()
        for (fmt, kv_dtype), bound in _BOUNDS.items():
            name = f"program/{'window' if window else 'full'}-{fmt}-kv-{kv_dtype}"
            tokens = _tokens(plan.vocab_size)
            yield Workload(name, plan, 0, len(plan.parts), tokens, fmt, kv_dtype, edits=True, max_nmse=bound)
    plan = TinyModel(window=20).plan()
    tokens = _tokens(plan.vocab_size)
    yield Workload("program/draws", plan, 0, len(plan.parts), tokens, edits=True, draws=True, max_nmse=1e-9)
    plan = without_head(TinyModel().plan())
    yield from _encoder_cases()
    yield Workload("program/headless", plan, 0, len(plan.parts), tokens, max_nmse=1e-9)
    yield Workload("program/taps", plan, 0, len(plan.parts), tokens, taps=(0, 3, 6), max_nmse=1e-9)


def _encoder_cases() -> Iterator[Workload]:
    """Yield the small encoder in every format, with a text longer than the kernels' chunks of keys, and
    scoring.
    """
    plan = TinyEncoder().plan()
    for (fmt, kv_dtype), bound in _BOUNDS.items():
        if kv_dtype == "f32":
            name = f"program/encoder-{fmt}"
            yield Workload(name, plan, 0, len(plan.parts), _tokens(plan.vocab_size), fmt, max_nmse=bound)
    long = (*_tokens(plan.vocab_size), *_tokens(plan.vocab_size, (600,)))
    yield Workload("program/encoder-long", plan, 0, len(plan.parts), long, max_nmse=1e-9)
    plan = TinyEncoder(labels=1).plan()
    tokens = _tokens(plan.vocab_size)
    yield Workload("program/encoder-score", plan, 0, len(plan.parts), tokens, token_types=True, max_nmse=1e-9)


def _tokens(vocab_size: int, lengths: tuple[int, ...] = (70, 5, 33)) -> tuple[tuple[int, ...], ...]:
    draw = np.random.default_rng(3)
    return tuple(tuple(draw.integers(0, vocab_size, n).tolist()) for n in lengths)
