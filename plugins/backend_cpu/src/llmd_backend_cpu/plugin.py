"""Entry point of the CPU backend."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from llmd.api import Backend, NotFoundError, hookimpl

if TYPE_CHECKING:
    from llmd.api import Device, DeviceInfo, DeviceOptions

LLMD_API = 2
TEST_ISA = "LLMD_TEST_CPU_ISA"
"""Environment variable for tests and benchmarks: the instruction set to use, as on an older processor."""


@hookimpl
def llmd_backends() -> Sequence[Backend]:
    return [Backend(name="cpu", probe=_probe, open=_open)]


def _probe() -> Sequence[DeviceInfo]:
    from llmd_backend_cpu.device import describe

    return [describe()]


def _open(name: str, options: DeviceOptions) -> Device:
    from llmd_backend_cpu.device import CpuDevice

    if name != "cpu":
        raise NotFoundError(f"the CPU backend has no device {name!r}", hint="its device is `cpu`")
    return CpuDevice(os.environ.get(TEST_ISA) or None, options.threads)
