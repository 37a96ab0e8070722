"""The entry point of the CPU backend."""

from __future__ import annotations

import pytest

from llmd.api import DeviceOptions, NotFoundError
from llmd.api.errors import DeviceError
from llmd_backend_cpu.plugin import LLMD_API, TEST_ISA, llmd_backends


def test_offers_one_backend_with_the_device_cpu() -> None:
    (backend,) = llmd_backends()
    (info,) = backend.probe()
    assert LLMD_API == 2
    assert (backend.name, info.name) == ("cpu", "cpu")
    device = backend.open("cpu", DeviceOptions())
    assert device.info.name == "cpu"
    device.close()


def test_computes_on_as_many_threads_as_it_is_told() -> None:
    (backend,) = llmd_backends()
    device = backend.open("cpu", DeviceOptions(threads=3))
    assert device.info.uses_threads
    assert device.info.description.endswith(", 3 threads")
    device.close()


def test_computes_as_an_older_processor_for_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    (backend,) = llmd_backends()
    monkeypatch.setenv(TEST_ISA, "generic")
    device = backend.open("cpu", DeviceOptions(threads=1))
    assert ", generic, " in device.info.description
    device.close()
    monkeypatch.setenv(TEST_ISA, "i486")
    with pytest.raises(DeviceError, match="'i486'"):
        backend.open("cpu", DeviceOptions())


def test_refuses_a_device_that_it_does_not_have() -> None:
    (backend,) = llmd_backends()
    with pytest.raises(NotFoundError, match="no device 'cpu:1'"):
        backend.open("cpu:1", DeviceOptions())
