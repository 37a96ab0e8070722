"""A tracer keeps what the loop and the stages did for each step; without one nothing is measured."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from llmd.api import Device
from llmd.api.messages import Grammar, Submit, Vocabulary
from llmd.builtin.reference.device import ReferenceDevice
from llmd.engine.core import EngineCore
from llmd.engine.steps.step_trace import UNTRACED, HostSpan, TracedStep, Tracer
from llmd.testing.null_device import NullDevice
from tests.serving import cores
from tests.serving.cores import run, submit


def ticking() -> Callable[[], float]:
    """Return a clock that goes on by a second with each reading."""
    return itertools.count(1.0).__next__


def test_a_step_has_its_pieces_and_is_kept_when_it_ends() -> None:
    tracer = Tracer(ticking())
    first, second = tracer.begin(), tracer.begin()
    with first.span("plan"):
        pass
    with second.span("plan"):
        pass
    with pytest.raises(ValueError, match="lost"), first.span("wait"):
        raise ValueError("lost")
    assert not tracer.steps
    first.end(3, 2, tuple)
    assert list(tracer.steps) == [
        TracedStep(1, 1.0, 7.0, 3, 2, (HostSpan("plan", 1.0, 2.0), HostSpan("wait", 5.0, 6.0)), ())
    ]


def test_without_a_tracer_the_stages_are_not_asked() -> None:
    with UNTRACED.span("plan"):
        pass
    UNTRACED.end(1, 1, lambda: pytest.fail("the stages were asked"))


def trace(device: Device, *requests: Submit, **options: Any) -> list[TracedStep]:
    """Run requests on a device; return the steps."""
    tracer = Tracer()
    core = cores.make_core(device, tracer=tracer, **options)
    run(core, *requests)
    core.close()
    return list(tracer.steps)


def names(step: TracedStep) -> list[str]:
    return [span.name for span in step.host]


@pytest.mark.parametrize("cuts", [(), (3, 6)])
@pytest.mark.parametrize("depth", [1, 2])
def test_every_step_of_a_model_is_traced_with_all_its_stages(depth: int, cuts: tuple[int, ...]) -> None:
    steps = trace(ReferenceDevice(), submit(1, 5), submit(2, 40), depth=depth, cuts=cuts)
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
    assert sum(step.num_rows for step in steps) >= 5 + 40 + 2 * 11
    assert len(steps) >= 12
    for step in steps:
        assert names(step)[0] == "plan"
        assert {"submit", "wait", "sampling", "append", "finish"} <= set(names(step))
        assert len(step.stages) == len(cuts) + 1
        assert all({"launch", "device"} <= {span.kind for span in spans} for spans in step.stages)
        times = [(one.start_s, one.end_s) for one in step.host]
        times += [(one.start_s, one.end_s) for spans in step.stages for one in spans]
        assert all(step.start_s <= start_s <= end_s <= step.end_s for start_s, end_s in times)


@pytest.mark.parametrize("device", [NullDevice(lambda: 0.0), NullDevice(lambda: 0.0, draws=True)])
def test_the_loop_does_one_thing_at_a_time_with_two_steps_in_flight(device: Device) -> None:
    steps = trace(device, submit(1, 5, temperature=0.7), submit(2, 9), depth=2)
    assert any(later.start_s < step.end_s for step, later in itertools.pairwise(steps))
    spans = sorted((span for step in steps for span in step.host), key=lambda span: span.start_s)
    assert all(before.end_s <= after.start_s for before, after in itertools.pairwise(spans))


def test_a_stage_that_keeps_no_times_has_none() -> None:
    tracer = Tracer()
    parts = cores.make_parts([ReferenceDevice()], depth=1)
    core = EngineCore(*parts, tracer=tracer)
    run(core, submit(1, 5, 3))
    assert {step.stages for step in tracer.steps} == {((),)}


def test_waiting_for_masks_and_late_edits_are_pieces_of_their_own() -> None:
    vocabulary = Vocabulary(tuple(bytes([token]) for token in range(131)), end_ids=(3,))
    tracer = Tracer()
    core = cores.make_core(ReferenceDevice(), tracer=tracer, depth=2)
    core.set_vocabulary(vocabulary)
    request = msgspec.structs.replace(submit(1, 5, 6), grammar=Grammar("regex", "[a-z]{9}"))
    run(core, request)
    core.close()
    found = [names(step) for step in tracer.steps]
    assert all("grammar" in step for step in found)
    assert any(step.index("edits") < step.index("grammar") for step in found if "edits" in step)
    masks = [span for step in tracer.steps for span in step.stages[0] if span.name == "masks"]
    assert len(masks) == len(found)
