"""Traced steps of an engine on a simulated card: launches, work of the card and copies have their tracks."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from llmd.api import Device
from llmd.api.messages import Load, StageSpec
from llmd.api.step import Float32
from llmd.benchmark.trace_events import trace_of
from llmd.builtin.architectures.plugin import llmd_architectures
from llmd.builtin.reference.device import ReferenceDevice
from llmd.engine.loading import load_model
from llmd.engine.steps.step_trace import Tracer
from tests.cuda.simulated import NEEDS_COMPILER, SimulatedCard, open_device
from tests.daemon.benchmark.traces import check_trace
from tests.plugins.backend_cuda.bench import LIMITS, Bench, hidden_of, one
from tests.serving.cores import run, submit
from tests.serving.model import write_model

pytestmark = NEEDS_COMPILER

ARCHITECTURES = {name: one for one in llmd_architectures() for name in one.names}


def traced(directory: Path, devices: dict[str, Device], stages: tuple[StageSpec, ...] = ()) -> Tracer:
    """Run two requests on a small model; return what was traced."""
    tracer = Tracer()
    load = Load(str(write_model(directory)), device="cuda:0", stages=stages, slots=2, context_len=64)
    model = load_model(load, ARCHITECTURES, devices.__getitem__, lambda _: None, tracer=tracer)
    run(model.core, submit(1, 5, 4), submit(2, 9, 3, temperature=0.8))
    model.close()
    return tracer


@pytest.mark.parametrize("deferred", [False, True])
def test_every_step_has_launches_work_of_the_card_and_copies(tmp_path: Path, deferred: bool) -> None:  # noqa: FBT001 - cases
    steps = list(traced(tmp_path, {"cuda:0": open_device(SimulatedCard(deferred=deferred))}).steps)
    trace = trace_of(steps, ["cuda:0: layers 0-1"])
    tracks = check_trace(trace)
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    found = Counter(tracks[event["pid"], event["tid"]] for event in events)
    for kind in ("launch", "device", "copy"):
        assert found[f"stage cuda:0: layers 0-1 / {kind}"] >= len(steps)
    assert found["engine / step in flight 2"], "two steps were in flight"


def test_a_card_and_another_device_have_tracks_of_their_own(tmp_path: Path) -> None:
    split = (StageSpec("cuda:0", "0", "0"), StageSpec("reference", "1", "1"))
    devices: dict[str, Device] = {"cuda:0": open_device(), "reference": ReferenceDevice()}
    steps = list(traced(tmp_path, devices, split).steps)
    trace = trace_of(steps, ["cuda:0: layer 0", "reference: layer 1"])
    assert {"stage cuda:0: layer 0 / device", "stage reference: layer 1 / device"} <= set(
        check_trace(trace).values()
    )
    for step in steps:
        card, reference = step.stages
        computed = [max(span.end_s for span in spans if span.kind == "device") for spans in (card, reference)]
        assert computed[0] < computed[1]


class LateRows:
    """Hidden states that another stage has computed only after some time."""

    def host(self) -> Float32:
        self.asked_s = time.perf_counter()
        time.sleep(0.01)
        self.given_s = time.perf_counter()
        return hidden_of(2).host()


def test_waiting_for_another_stage_is_not_work_of_the_card() -> None:
    stage, rows = Bench(first=1, last=3, limits=msgspec.structs.replace(LIMITS, spans=True)).stage, LateRows()
    ticket = stage.submit(one(2), rows, None)
    stage.hidden(ticket).host()
    spans = [span for span in stage.spans(ticket) if span.kind != "launch"]
    waited_s = [min(span.end_s, rows.given_s) - max(span.start_s, rows.asked_s) for span in spans]
    assert max(waited_s) < (rows.given_s - rows.asked_s) / 2, "the clocks of the tests are not exact"
