"""Workloads of several ops: parts of the small model, all of it in every format, and the small encoder."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from llmd.api import Format
from llmd.models.headless import without_head
from llmd.testing.bounds import MAX_NMSE
from llmd.testing.encoder_plan import TinyEncoder
from llmd.testing.plans import TinyModel
from llmd.testing.workload import Workload

# Bounds of the formats. Activations of q8 may be rounded to neighbouring codes.
_BOUNDS: dict[Format, float] = {"f32": 1e-9, "f16": 1e-9, "bf16": 1e-9, "q8": 1e-4}


def part_cases() -> Iterator[Workload]:
    """Yield each part of the small model as a workload."""
    plan = TinyModel().plan()
    for index, part in enumerate(plan.parts):
        yield Workload(f"part/{part.name}", plan, index, index + 1, tokens_of(plan.vocab_size), max_nmse=1e-9)


def program_cases() -> Iterator[Workload]:
    """Yield the small model in every format, with and without a window, and the small encoder.

    The small model also runs with draws, with streamed weights, without a head (plain and with taps), and as
    a hybrid.
    """
    for window in (20, None):
        plan = TinyModel(window=window).plan()
        label, tokens = f"program/{'window' if window else 'full'}", tokens_of(plan.vocab_size)
        case = Workload(label, plan, 0, len(plan.parts), tokens, edits=True)
        for kv_dtype, bounds in MAX_NMSE["f32"].items():
            yield msgspec.structs.replace(
                case,
                name=f"{label}-f32-kv-{kv_dtype}",
                kv_dtype=kv_dtype,
                kv_is_tested=True,
                max_nmse=bounds.program,
            )
        for fmt, bound in _BOUNDS.items():
            if fmt != "f32":
                times_steps = (window, fmt) == (None, "f16")
                yield msgspec.structs.replace(
                    case, name=f"{label}-{fmt}", format=fmt, times_steps=times_steps, max_nmse=bound
                )
    plan = TinyModel(window=20).plan()
    tokens = tokens_of(plan.vocab_size)
    yield Workload("program/draws", plan, 0, len(plan.parts), tokens, edits=True, draws=True, max_nmse=1e-9)
    streamed = tuple(range(1, len(plan.parts)))
    whole = Workload("program/streamed", plan, 0, len(plan.parts), tokens, edits=True, max_nmse=1e-9)
    yield msgspec.structs.replace(whole, streamed=streamed)
    yield msgspec.structs.replace(whole, name="program/streamed-in-part", streamed=(2, 3, 6))
    mixture = TinyModel(experts=9).plan()
    for fmt, bound in _BOUNDS.items():
        name = f"program/experts-{fmt}"
        yield Workload(name, mixture, 0, len(mixture.parts), tokens, fmt, edits=True, max_nmse=bound)
    plan = without_head(TinyModel().plan())
    yield from _encoder_cases()
    hybrid = TinyModel(hybrid=True).plan()
    yield Workload(
        "program/hybrid", hybrid, 0, len(hybrid.parts), tokens_of(hybrid.vocab_size), max_nmse=1e-9
    )
    yield Workload("program/headless", plan, 0, len(plan.parts), tokens, max_nmse=1e-9)
    yield Workload("program/taps", plan, 0, len(plan.parts), tokens, taps=(0, 3, 6), max_nmse=1e-9)


def _encoder_cases() -> Iterator[Workload]:
    """Yield the small encoder in every format, with a text longer than the kernels' chunks of keys, and
    scoring.
    """
    plan = TinyEncoder().plan()
    for fmt, bound in _BOUNDS.items():
        name = f"program/encoder-{fmt}"
        yield Workload(name, plan, 0, len(plan.parts), tokens_of(plan.vocab_size), fmt, max_nmse=bound)
    long = (*tokens_of(plan.vocab_size), *tokens_of(plan.vocab_size, (600,)))
    yield Workload("program/encoder-long", plan, 0, len(plan.parts), long, max_nmse=1e-9)
    plan = TinyEncoder(labels=1).plan()
    tokens = tokens_of(plan.vocab_size)
    yield Workload("program/encoder-score", plan, 0, len(plan.parts), tokens, token_types=True, max_nmse=1e-9)


def tokens_of(vocab_size: int, lengths: tuple[int, ...] = (70, 5, 33)) -> tuple[tuple[int, ...], ...]:
    """Return random sequences."""
    draw = np.random.default_rng(3)
    return tuple(tuple(draw.integers(0, vocab_size, n).tolist()) for n in lengths)
