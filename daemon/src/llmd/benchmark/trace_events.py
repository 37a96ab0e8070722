"""Traced steps as a file for trace viewers, in the Trace Event Format of Chrome.

https://ui.perfetto.dev and chrome://tracing open it. The loop of the engine and each stage are a process of
their own there, and each kind of work a thread, with a name. Times are microseconds from the first step on.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec

from llmd.api.spans import Span, SpanKind
from llmd.engine.steps.step_trace import HostSpan, TracedStep

ENGINE = 1
"""Process of the engine; stage ``i`` is process ``ENGINE + 1 + i``."""
LOOP = 1
"""Thread of the engine for what its loop does; those after it show steps in flight."""
KINDS: tuple[SpanKind, ...] = get_args(SpanKind)
"""Threads of a stage, from 1."""


def write_trace(path: Path, steps: Sequence[TracedStep], stages: Sequence[str]) -> None:
    """Write a file; ``stages`` are the names of the stages."""
    path.write_bytes(msgspec.json.encode(trace_of(steps, stages)))


def trace_of(steps: Sequence[TracedStep], stages: Sequence[str]) -> dict[str, Any]:
    """Return the content of the file."""
    slots = slots_of(steps)
    events = [*_names(stages, max(slots, default=0)), *_events(steps, slots)]
    return {"displayTimeUnit": "ms", "traceEvents": events}


def slots_of(steps: Sequence[TracedStep]) -> list[int]:
    """Return for each step the lowest number, from 1, that no step has that is in flight at the same time."""
    slots: list[int] = []
    ends: list[tuple[float, int]] = []  # of the steps in flight, with their slots
    free: list[int] = []
    for step in steps:
        while ends and ends[0][0] <= step.start_s:
            heapq.heappush(free, heapq.heappop(ends)[1])
        slot = heapq.heappop(free) if free else len(ends) + 1
        heapq.heappush(ends, (step.end_s, slot))
        slots.append(slot)
    return slots


def _names(stages: Sequence[str], num_slots: int) -> Iterator[dict[str, Any]]:
    """Yield the names of processes and threads, in the order in which viewers show them."""
    in_flight = [f"step in flight {slot}" for slot in range(1, num_slots + 1)]
    processes = [("engine", ["loop", *in_flight]), *((f"stage {name}", KINDS) for name in stages)]
    for process, (name, threads) in enumerate(processes, ENGINE):
        yield _metadata("process_name", process, 0, name=name)
        yield _metadata("process_sort_index", process, 0, sort_index=process)
        for thread, thread_name in enumerate(threads, 1):
            yield _metadata("thread_name", process, thread, name=thread_name)
            yield _metadata("thread_sort_index", process, thread, sort_index=thread)


def _events(steps: Sequence[TracedStep], slots: Sequence[int]) -> Iterator[dict[str, Any]]:
    origin_s = steps[0].start_s if steps else 0.0
    for step, slot in zip(steps, slots, strict=True):
        size = {"rows": step.num_rows, "sequences": step.num_sequences}
        whole = HostSpan(f"step {step.number}", step.start_s, step.end_s)
        yield _event(step, origin_s, whole, "step", (ENGINE, LOOP + slot), **size)
        for done in step.host:
            yield _event(step, origin_s, done, "host", (ENGINE, LOOP))
        for process, spans in enumerate(step.stages, ENGINE + 1):
            for span in spans:
                yield _event(step, origin_s, span, span.kind, (process, KINDS.index(span.kind) + 1))


def _event(
    step: TracedStep,
    origin_s: float,
    span: HostSpan | Span,
    category: str,
    track: tuple[int, int],
    **arguments: object,
) -> dict[str, Any]:
    """Return the event of a span on a track, which is a process and a thread."""
    return {
        "name": span.name,
        "cat": category,
        "ph": "X",
        "ts": round(1e6 * (span.start_s - origin_s), 3),
        "dur": round(1e6 * (span.end_s - span.start_s), 3),
        "pid": track[0],
        "tid": track[1],
        "args": {"step": step.number, **arguments},
    }


def _metadata(event: str, process: int, thread: int, **arguments: object) -> dict[str, Any]:
    return {"name": event, "ph": "M", "pid": process, "tid": thread, "args": arguments}
