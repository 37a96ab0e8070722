"""A device in a process of its own passes the conformance suite, like the same device in this one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from msgspec import structs

from llmd.api import MemoryBudgetError, StageLimits, Step, Ticket
from llmd.builtin.reference.device import describe
from llmd.host.devices import DeviceState
from llmd.remote.device import RemoteDevice
from llmd.testing.conformance import cases_for, check_case
from llmd.testing.plans import TinyModel
from llmd.testing.runs import lower_range
from llmd.testing.selections import plain_selection
from llmd.testing.sources import RandomSource
from llmd.testing.workload import Workload
from tests.serving.apart import apart

CASES = {case.name: case for case in cases_for(describe())}
WHOLE = [name for name, case in CASES.items() if case.has_head and case.first_part == 0]
CHOSEN = sorted({*WHOLE[:2], *list(CASES)[::40], *(n for n in CASES if CASES[n].draws or CASES[n].taps)})[:16]


@pytest.fixture(scope="module")
def device(reference: DeviceState) -> Iterator[RemoteDevice]:
    opened = apart(reference)
    yield opened
    opened.close()


@pytest.mark.parametrize("name", CHOSEN)
@pytest.mark.timeout(120)
def test_it_conforms(device: RemoteDevice, name: str) -> None:
    found = list(check_case(device, CASES[name]))
    assert found
    assert [result for result in found if result.problem] == []


def test_what_it_says_is_what_the_device_says(device: RemoteDevice, reference: DeviceState) -> None:
    # The free bytes of main memory change.
    assert structs.replace(device.info, memory_bytes=0) == structs.replace(reference.info, memory_bytes=0)
    assert device.free_bytes() > 0
    assert device.read_rate(0.01) > 0


def test_a_load_reports_progress_and_errors_keep_their_class(device: RemoteDevice) -> None:
    plan = TinyModel().plan()
    workload = Workload("tiny", plan, 0, len(plan.parts), ((1, 2, 3),))
    program = lower_range(device, workload, 0, len(plan.parts))
    assert device.check(program) == []
    seen: list[tuple[int, int]] = []
    weights = device.load(program, RandomSource(), lambda done, total: seen.append((done, total)))
    assert seen
    assert seen[-1][0] == seen[-1][1]
    limits = StageLimits(8, 2, 2, "f32")
    assert weights.step_bytes(limits) > 0
    groups = [group.id for group in program.groups if group.layers]
    assert all(weights.kv_bytes(group, "f32") > 0 for group in groups)
    with pytest.raises(MemoryBudgetError):
        weights.stage(dict.fromkeys(groups, 1 << 50), limits)
    again = device.load(program, RandomSource(), lambda *_: None, [weights])
    stage = again.stage(dict.fromkeys(groups, 4), limits)
    blocks = np.array([1, 3], np.int32)
    contents = stage.read_blocks(groups[0], blocks)
    contents[:] = np.arange(contents.size, dtype=np.uint8).reshape(contents.shape)
    stage.write_blocks(groups[0], blocks, contents)
    assert np.array_equal(stage.read_blocks(groups[0], blocks), contents)
    with pytest.raises(ValueError, match="ticket 7 is not in flight"):
        stage.rows(Ticket(7), blocks)
    none = np.zeros(0, np.int32)
    ticket = stage.submit(Step(none, none, none, (), none), None, plain_selection([]))
    with pytest.raises(ValueError):  # noqa: PT011 - the words are the device's
        stage.wait(ticket, 1.0)
    stage.release(ticket)
    for closed in (stage, weights, again):
        closed.close()
