"""A device that computes as the reference does.

A backend of your own starts here and is right from its first minute. Then it takes over `ExampleDevice.load`
with its own kernels, and the conformance suite tells whether it is still right.
"""

from __future__ import annotations

import msgspec

from llmd.api import Device, DeviceInfo, DeviceProfile, LoadedParts, Program, Progress, Refusal, TensorSource
from llmd.builtin.reference.device import ReferenceDevice


def describe() -> DeviceInfo:
    """What the planner may know before the device is opened."""
    return msgspec.structs.replace(
        ReferenceDevice().info,
        name="example",
        kind="example",
        score=1,  # the usable device with the highest score is the default one
        description="the reference under another name",
    )


class ExampleDevice:
    """The five members of `llmd.api.Device`."""

    def __init__(self) -> None:
        self.info = describe()
        self._reference: Device = ReferenceDevice()

    def check(self, program: Program) -> list[Refusal]:
        """Every reason why the program cannot run here; empty means that it can."""
        return self._reference.check(program)

    def benchmark(self, budget_s: float) -> DeviceProfile:
        """Measured rates, taken within about this many seconds."""
        return self._reference.benchmark(budget_s)

    def load(self, program: Program, tensors: TensorSource, progress: Progress) -> LoadedParts:
        """Take the weights. What it returns allocates KV pools and runs steps."""
        return self._reference.load(program, tensors, progress)

    def close(self) -> None:
        """Free what the device holds."""
        self._reference.close()
