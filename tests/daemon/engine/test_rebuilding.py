"""Requests go on with the same tokens when their core is built again on other devices."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from llmd.api.errors import DeviceError, DeviceLostError
from llmd.api.messages import BeamParams, Grammar
from llmd.api.results import BeamOutput, Failed, TokenOutput
from llmd.builtin.reference.device import ReferenceDevice
from llmd.engine.core import EngineCore
from llmd.testing.null_device import NullDevice, NullStage
from tests.serving.cores import finish, make_core, make_parts, run, submit
from tests.serving.failing_device import FailingDevice
from tests.serving.mixed_requests import NUM_STREAMS, VOCABULARY, Answers, answers

SIZES: dict[str, Any] = {"slots": 8, "budget_bytes": 1 << 22}


@pytest.fixture(scope="module")
def undisturbed() -> Answers:
    found = answers(make_core(ReferenceDevice(), depth=1, **SIZES))
    assert len(found) == NUM_STREAMS
    assert not any(isinstance(one, Failed) for many in found.values() for one in many)
    return found


def leaves_nothing(core: EngineCore) -> bool:
    core.pager.check_integrity()
    empty = (core._grammars._bound, core._sampler._requests, core._beams._owners)
    return core.report().kv_blocks_used == 0 and empty == ({}, {}, {})


@pytest.mark.parametrize(
    ("place", "call", "after", "depth"),
    [
        (0, "submit", 0, 1),
        (0, "submit", 7, 2),
        (0, "hidden", 12, 2),
        (1, "submit", 20, 1),
        (1, "wait", 0, 2),
        (1, "wait", 15, 1),
        (1, "apply_masks", 5, 2),
        (1, "rows", 0, 1),
    ],
)
def test_all_streams_go_on_when_a_device_is_lost_in_a_call(
    undisturbed: Answers, place: int, call: str, after: int, *, depth: int
) -> None:
    devices = [FailingDevice("a"), FailingDevice("b")]
    devices[place].lose(call, after)
    core = EngineCore(*make_parts(devices, cuts=(4,), depth=depth, **SIZES))
    lost = []

    def recover(error: DeviceError) -> tuple[Failed, ...]:
        assert isinstance(error, DeviceLostError)
        lost.append(error.devices)
        core._pipeline.close()
        left = devices[1 - place]
        pipeline, _, budget, limits = make_parts([left], depth=3 - depth, **SIZES)
        return core.rebuild(pipeline, budget, limits)

    assert answers(core, recover) == undisturbed
    assert lost == [(devices[place].info.name,)]
    assert leaves_nothing(core)


@pytest.mark.parametrize("depth", [1, 2], ids=["one step", "two steps"])
def test_all_streams_go_on_when_a_device_is_lost_between_steps_again_and_again(
    undisturbed: Answers, monkeypatch: pytest.MonkeyPatch, *, depth: int
) -> None:
    devices = [FailingDevice("0")]
    core = EngineCore(*make_parts(devices, depth=depth, **SIZES))
    step, count = core.step, 0

    def lose_every_ninth() -> Any:
        nonlocal count
        count += 1
        devices[-1].is_lost = count % 9 == 0
        return step()

    def recover(_error: DeviceError) -> tuple[Failed, ...]:
        devices.append(FailingDevice(str(len(devices))))
        pipeline, _, budget, limits = make_parts(devices[-1:], depth=depth, **SIZES)
        return core.rebuild(pipeline, budget, limits)

    monkeypatch.setattr(core, "step", lose_every_ninth)
    assert answers(core, recover) == undisturbed
    assert len(devices) > 5
    assert leaves_nothing(core)


def rebuilt(core: EngineCore, **options: Any) -> tuple[Failed, ...]:
    pipeline, _, budget, limits = make_parts([ReferenceDevice()], depth=1, **options)
    return core.rebuild(pipeline, budget, limits)


def test_requests_without_room_end_and_the_others_go_on() -> None:
    grammar = Grammar("regex", "[a-z]{9,400}")
    small = [submit(1, 20), msgspec.structs.replace(submit(2, 20), beams=BeamParams(2))]
    large = [
        submit(3, 200, max_tokens=200),
        msgspec.structs.replace(submit(4, 40, max_tokens=60), beams=BeamParams(4)),
        msgspec.structs.replace(submit(5, 5, max_tokens=400), grammar=grammar),
        msgspec.structs.replace(submit(6, 40, max_tokens=60), grammar=grammar, beams=BeamParams(4)),
    ]
    expected = run(make_core(ReferenceDevice(), depth=1), *small)
    core = make_core(ReferenceDevice(), depth=1)
    core.set_vocabulary(VOCABULARY)
    for request in (*small, *large):
        core.submit(request)
    tokens = list(core.step().tokens)
    failed = rebuilt(core, budget_bytes=120_000)
    assert {one.request_id: one.error for one in failed} == dict.fromkeys([3, 4, 5, 6], "MemoryBudgetError")
    assert all("the KV pool" in one.message for one in failed)
    beams: list[BeamOutput] = []
    while core.busy:
        output = core.step()
        tokens += output.tokens
        beams += output.beams
    assert [one for one in tokens if one.request_id == 1] == expected[1]
    assert [one.request_id for one in beams] == [2]
    assert leaves_nothing(core)


@pytest.mark.parametrize("depth", [1, 2])
def test_steps_overlap_as_the_new_devices_allow(*, depth: int) -> None:
    core = make_core(ReferenceDevice(), depth=3 - depth)
    core.submit(submit(1, 5))
    core.step()
    pipeline, _, budget, limits = make_parts([NullDevice(lambda: 0.0)], depth=depth)
    core.rebuild(pipeline, budget, limits)
    finish(core)
    (stage,) = pipeline._stages
    assert isinstance(stage, NullStage)
    assert stage.most_in_flight == depth


def test_a_failure_that_no_step_has_raised_yet_is_forgotten() -> None:
    expected = run(make_core(ReferenceDevice(), depth=1), submit(1, 5, temperature=1.0))[1]
    device = FailingDevice("a")
    core = make_core(device, depth=2, draws=False)
    device.lose("submit", 5)
    core.submit(submit(1, 5, temperature=1.0))
    tokens: list[TokenOutput] = []
    while not device.is_lost:
        tokens += core.step().tokens
    assert rebuilt(core) == ()
    assert [*tokens, *finish(core)[1]] == expected


def test_counters_and_order_stay_and_the_prefix_cache_is_lost() -> None:
    core = make_core(ReferenceDevice(), depth=1, slots=1)
    run(core, submit(1, 64, max_tokens=2))
    for request_id in (2, 3):
        core.submit(submit(request_id, 4, max_tokens=1))
    before = core.report()
    assert rebuilt(core, slots=1) == ()
    assert core.report() == replace(before, step_s=None)  # steps on other devices take another time
    assert [core.step().tokens[0].request_id for _ in range(2)] == [2, 3]
    run(core, submit(1, 64, max_tokens=2))
    assert core.report().cached_tokens == 0
