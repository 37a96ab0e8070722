"""Checks the times that a device keeps of its steps (`Stage.spans`)."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import get_args

import numpy as np

from llmd.api import BLOCK_LEN, Device, Span, SpanKind, Stage, StageLimits, Step
from llmd.api.features import SPANS
from llmd.api.spans import CLOCK_TOLERANCE_S
from llmd.testing.runs import lower_range
from llmd.testing.selections import plain_selection
from llmd.testing.sources import RandomSource
from llmd.testing.workload import Workload

NUM_STEPS = 2
"""Steps in flight at once: the first sequence of a workload in two chunks."""
WAIT_S = 60.0
_ROUNDING_S = 1e-5


def wrong_times(device: Device, workload: Workload) -> str:
    """Run steps through two stages that keep times; return what is wrong with the times, or an empty text."""
    middle = (workload.first_part + workload.last_part) // 2
    ranges = (workload.first_part, middle), (middle, workload.last_part)
    with ExitStack() as stack:
        first, last = (stage_of_parts(device, workload, *parts, stack) for parts in ranges)
        began_s = time.perf_counter()
        tickets = []
        for step in _steps(workload):
            ticket = first.submit(step, None, None)
            selection = plain_selection([step.num_rows - 1])
            tickets.append((ticket, last.submit(step, first.hidden(ticket), selection)))
        for _, ticket in tickets:
            last.wait(ticket, WAIT_S)
        ended_s = time.perf_counter()
        spans = [(first.spans(one), last.spans(other)) for one, other in tickets]
    faults = [fault for both in spans for one in both for fault in faults_of_step(one, began_s, ended_s)]
    for of_stage in zip(*spans, strict=True):
        faults += overlaps(list(itertools.chain(*of_stage)))
    return "; ".join(dict.fromkeys(faults))


def faults_of_step(spans: Sequence[Span], began_s: float, ended_s: float) -> list[str]:
    """Return what is wrong with the spans of one step of a stage, which ran between two times."""
    faults = [f"{one.kind!r} is no kind of span" for one in spans if one.kind not in get_args(SpanKind)]
    if not any(one.kind == "device" for one in spans):
        faults.append("no span is of the kind `device`")
    faults += [f"{_called(one)} ends before it begins" for one in spans if one.end_s < one.start_s]
    early, late = began_s - CLOCK_TOLERANCE_S, ended_s + CLOCK_TOLERANCE_S
    faults += [f"{_called(one)} begins before the step was submitted" for one in spans if one.start_s < early]
    faults += [f"{_called(one)} ends after the step has ended" for one in spans if one.end_s > late]
    return faults


def overlaps(spans: Sequence[Span]) -> list[str]:
    """Return a text for each pair of neighbouring spans of one kind that overlap; all are of one stage."""
    ordered = sorted(spans, key=lambda one: (one.kind, one.start_s))
    return [
        f"{_called(after)} begins before {_called(before)} has ended"
        for before, after in itertools.pairwise(ordered)
        if before.kind == after.kind and after.start_s < before.end_s - _ROUNDING_S
    ]


def _called(span: Span) -> str:
    return f"the {span.kind} span `{span.name}`"


def stage_of_parts(device: Device, workload: Workload, first: int, last: int, stack: ExitStack) -> Stage:
    """Return a stage of some parts, which keeps times of steps if the device can; ``stack`` closes it."""
    program = lower_range(device, workload, first, last)
    weights = device.load(program, RandomSource(), lambda _done, _total: None)
    stack.callback(weights.close)
    rows, keeps_times = len(workload.tokens[0]), SPANS in device.info.features
    limits = StageLimits(rows, 1, 1, workload.kv_dtype, tickets=NUM_STEPS, spans=keeps_times)
    blocks = {group.id: -(-rows // BLOCK_LEN) for group in program.groups if group.layers}
    stage = weights.stage(blocks, limits)
    stack.callback(stage.close)
    return stage


def _steps(workload: Workload) -> list[Step]:
    ids = np.array(workload.tokens[0], np.int32)
    table = np.arange(-(-len(ids) // BLOCK_LEN), dtype=np.int32)[None]
    chunks = np.array_split(np.arange(len(ids), dtype=np.int32), NUM_STEPS)
    return [
        Step(
            token_ids=ids[places],
            positions=places,
            row_offsets=np.array([0, len(places)], np.int32),
            block_tables=tuple(table for _ in workload.plan.groups),
            copies=np.zeros((0, 3), np.int32),
        )
        for places in chunks
    ]
