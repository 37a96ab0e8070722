"""Entry point of the CUDA backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from llmd.api import Backend, hookimpl

if TYPE_CHECKING:
    from llmd.api import Device, DeviceInfo, DeviceOptions

LLMD_API = 2


@hookimpl
def llmd_backends() -> Sequence[Backend]:
    return [
        Backend(
            name="cuda",
            probe=_probe,
            open=_open,
            prepare=_prepare,
            driver="the NVIDIA driver",
            probe_timeout_s=60.0,  # a card that sleeps takes seconds to wake up
            isolated=True,
        )
    ]


def _probe() -> Sequence[DeviceInfo]:
    from llmd_backend_cuda.probe import probe

    return probe()


def _prepare(name: str) -> None:
    from llmd_backend_cuda.device import prepared_specs
    from llmd_backend_cuda.kernel_cache import KernelCache
    from llmd_backend_cuda.probe import card_of

    KernelCache(card_of(name).capability).compile_all(prepared_specs())


def _open(name: str, options: DeviceOptions) -> Device:
    from llmd_backend_cuda.device import CudaDevice
    from llmd_backend_cuda.probe import card_of

    return CudaDevice(card_of(name), options)
