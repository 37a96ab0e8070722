"""The file of traced steps has a named track for each kind of work of the loop and of each stage."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from llmd.api.spans import Span
from llmd.benchmark.trace_events import slots_of, trace_of, write_trace
from llmd.builtin.reference.device import ReferenceDevice
from llmd.engine.steps.step_trace import HostSpan, TracedStep, Tracer
from tests.daemon.benchmark.traces import check_trace
from tests.serving import cores
from tests.serving.cores import run, submit

FIRST = TracedStep(
    number=7,
    start_s=100.0,
    end_s=100.004,
    num_rows=5,
    num_sequences=2,
    host=(HostSpan("plan", 100.0, 100.0005), HostSpan("wait", 100.003, 100.004)),
    stages=((Span("launch", "submit", 100.0005, 100.001), Span("device", "layers", 100.001, 100.003)), ()),
)
SECOND = msgspec.structs.replace(
    FIRST,
    number=8,
    start_s=100.0015,
    end_s=100.006,
    host=(HostSpan("plan", 100.0015, 100.002),),
    stages=((), (Span("copy", "results", 100.004, 100.005),)),
)


def test_times_are_microseconds_from_the_first_step_on() -> None:
    trace = trace_of([FIRST, SECOND], ["cpu: layer 0", "cuda:0: layer 1"])
    names = check_trace(trace)
    found = {
        (event["name"], event["ts"], event["dur"], names[event["pid"], event["tid"]], event["args"]["step"])
        for event in trace["traceEvents"]
        if event["ph"] == "X"
    }
    assert found == {
        ("step 7", 0.0, 4000.0, "engine / step in flight 1", 7),
        ("step 8", 1500.0, 4500.0, "engine / step in flight 2", 8),
        ("plan", 0.0, 500.0, "engine / loop", 7),
        ("wait", 3000.0, 1000.0, "engine / loop", 7),
        ("plan", 1500.0, 500.0, "engine / loop", 8),
        ("submit", 500.0, 500.0, "stage cpu: layer 0 / launch", 7),
        ("layers", 1000.0, 2000.0, "stage cpu: layer 0 / device", 7),
        ("results", 4000.0, 1000.0, "stage cuda:0: layer 1 / copy", 8),
    }
    (whole,) = (event for event in trace["traceEvents"] if event["name"] == "step 7")
    assert whole["args"] == {"step": 7, "rows": 5, "sequences": 2}


def test_steps_share_a_track_if_one_begins_after_the_other_has_ended() -> None:
    def steps(*times: tuple[float, float]) -> list[TracedStep]:
        return [msgspec.structs.replace(FIRST, start_s=start, end_s=end) for start, end in times]

    assert slots_of(steps((0, 2), (1, 3), (2, 4), (2.5, 5), (3, 6))) == [1, 2, 1, 3, 2]
    assert slots_of([]) == []


@pytest.mark.parametrize(("depth", "cuts"), [(1, ()), (2, ()), (3, (2, 5))])
def test_the_file_of_a_model_is_valid(tmp_path: Path, depth: int, cuts: tuple[int, ...]) -> None:
    tracer = Tracer()
    core = cores.make_core(ReferenceDevice(), tracer=tracer, depth=depth, cuts=cuts)
    run(core, submit(1, 5), submit(2, 40, temperature=0.9), submit(3, 9))
    names = [f"reference: stage {number}" for number in range(len(cuts) + 1)]
    write_trace(tmp_path / "trace.json", list(tracer.steps), names)
    trace = json.loads((tmp_path / "trace.json").read_text())
    tracks = check_trace(trace)
    assert {f"stage {name} / {kind}" for name in names for kind in ("launch", "device", "copy")} <= set(
        tracks.values()
    )
    in_flight = [name for name in tracks.values() if name.startswith("engine / step in flight")]
    assert len(in_flight) >= min(depth, 2)


def test_without_steps_the_file_has_only_names() -> None:
    assert check_trace(trace_of([], ["null"])) == {
        (1, 1): "engine / loop",
        (2, 1): "stage null / launch",
        (2, 2): "stage null / device",
        (2, 3): "stage null / copy",
        (2, 4): "stage null / weights",
    }


@pytest.mark.parametrize(
    "broken",
    [
        {"ts": -5.0},
        {"dur": 1e7},
        {"tid": 99},
        {"ph": "B"},
        {"args": {"step": 3}},
    ],
)
def test_the_check_finds_what_is_wrong(broken: dict[str, object]) -> None:
    trace = trace_of([FIRST, SECOND], ["a", "b"])
    (plan, *_) = (event for event in trace["traceEvents"] if event["name"] == "plan")
    plan.update(broken)
    with pytest.raises((AssertionError, KeyError)):
        check_trace(trace)
