"""A device for each instruction set of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from llmd_backend_cpu import _ext
from llmd_backend_cpu.device import CpuDevice
from tests.instruction_sets import TESTED


@pytest.fixture(params=_ext.available_isas())
def device(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> Iterator[CpuDevice]:
    record_property(TESTED, request.param)
    device = CpuDevice(isa=request.param, threads=2)
    yield device
    device.close()
