from __future__ import annotations

import pytest
from msgspec import structs

from llmd.api.device import HOST_MEMORY, DeviceInfo
from llmd.api.errors import NotFoundError
from llmd.engine.placement.candidates import are_rivals
from tests.daemon.engine.placement.tiny_candidates import QUICK, SLOW, candidates
from tests.serving.machine import GivenBenchmarks, machine_of

(ONE,) = candidates(QUICK)


def info(name: str, score: int = 1, **fields: object) -> DeviceInfo:
    return structs.replace(ONE.info, name=name, score=score, **fields)


def test_one_card_of_two_backends_is_one_device() -> None:
    card = structs.replace(ONE, info=info("cuda:0", kind="cuda", memory_id="pci-1"))
    same = structs.replace(ONE, info=info("vulkan:0", kind="vulkan", memory_id="pci-1"))
    other = structs.replace(ONE, info=info("vulkan:1", kind="vulkan", memory_id="pci-2"))
    assert are_rivals(card, same)
    assert not are_rivals(card, other)
    assert not are_rivals(same, other)


def test_devices_of_main_memory_work_together() -> None:
    cpu = structs.replace(ONE, info=info("cpu", kind="cpu", memory_id=HOST_MEMORY))
    reference = structs.replace(ONE, info=info("reference", kind="reference", memory_id=HOST_MEMORY))
    assert not are_rivals(cpu, reference)


def test_usable_devices_come_best_first_and_named_ones_in_their_order() -> None:
    machine = machine_of([info("a", 1), info("b", 3), info("c", 2)])
    assert [device.info.name for device in machine.usable()] == ["b", "c", "a"]
    assert [device.info.name for device in machine.usable(["a", "b"])] == ["a", "b"]
    assert machine.info("c").score == 2
    with pytest.raises(NotFoundError, match="there is no device 'd'"):
        machine.usable(["a", "d"])
    with pytest.raises(NotFoundError):
        machine_of([]).usable()


def test_measured_devices_have_their_rates_and_their_room() -> None:
    machine = machine_of(
        [info("a", 2, memory_bytes=5), info("b", memory_bytes=7)],
        {"b": SLOW},
        room=lambda _, memory_bytes: memory_bytes - 1,
    )
    (found,) = machine.measured(machine.usable())
    assert (found.info.name, found.profile, found.free_bytes) == ("b", SLOW, 6)


def test_devices_are_measured_if_they_were_not_and_those_that_cannot_be_are_left_out() -> None:
    benchmarks = GivenBenchmarks({"a": QUICK}, {"b": SLOW})
    machine = machine_of([info("a"), info("b"), info("c")], benchmarks=benchmarks)
    found = machine.measure(machine.usable())
    assert [(one.info.name, one.profile) for one in found] == [("a", QUICK), ("b", SLOW)]
    assert benchmarks.measured == ["b", "c"]
