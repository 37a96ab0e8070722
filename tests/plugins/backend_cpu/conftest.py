"""A device for each instruction set of this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from llmd_backend_cpu import _ext
from llmd_backend_cpu.device import CpuDevice


@pytest.fixture(params=_ext.available_isas())
def device(request: pytest.FixtureRequest) -> Iterator[CpuDevice]:
    device = CpuDevice(isa=request.param, threads=2)
    yield device
    device.close()
