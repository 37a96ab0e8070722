"""Which kernels a stage uses (`llmd.api.features.KERNELS`)."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import msgspec


class SlowPath(msgspec.Struct, frozen=True):
    """A way of computing that is slower than what the device usually does, and than what its rates say."""

    what: str
    """What the device does and why, after its name: ``launches kernels one by one, because …``."""
    fix: str = ""
    """What the user can do."""


class KernelUse(msgspec.Struct, frozen=True):
    """The kernels of a stage."""

    names: tuple[str, ...] = ()
    """What is in use, in a few words each, such as ``graphs up to 64 rows``; for people."""
    slow: tuple[SlowPath, ...] = ()
    """Slower ones than usual."""


@runtime_checkable
class NamesKernels(Protocol):
    """What a `Stage` of a device with the feature `KERNELS` has in addition."""

    def kernels(self) -> KernelUse:
        """Return which kernels the stage uses at the moment.

        Called about once a second, also while another thread uses the stage: return what is known, and do
        nothing with the device.
        """
        ...
