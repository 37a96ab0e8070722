"""Runs conformance cases, for the Khronos validation layer; ``--planted`` leaves out a barrier instead.

The layer looks at whole buffers, and dispatches of one phase use disjoint parts of a buffer. So there is a
barrier between any two dispatches here; `test_phases.py` runs those of a phase in another order.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Sequence

from llmd.api import DeviceOptions
from llmd.testing.conformance import cases_for, check_case
from llmd_backend_vulkan.device import VulkanDevice
from llmd_backend_vulkan.memory import copy
from llmd_backend_vulkan.probe import find_devices
from llmd_backend_vulkan.runtime import Dispatch, Recording
from llmd_backend_vulkan.vulkan import CPU

CASES = (
    "program/full-f32-kv-int8",
    "program/window-bf16",
    "program/hybrid",
    "program/taps",
    "program/encoder-score",
    "program/q6_k-activations-f32",
    "attention/long-f16",
)


def main(*, planted: bool) -> None:
    """Run the cases, and print how many results there were."""
    physical = next(device for device in find_devices() if device.kind == CPU)
    device = VulkanDevice(physical, DeviceOptions())
    if planted:
        buffers = [device.runtime.allocate(64) for _ in range(3)]
        first, second = (copy(a, 0, b, 0, 64) for a, b in itertools.pairwise(buffers))
        device.runtime.run([[first, second]])
        return
    record = device.runtime.record

    def one_by_one(phases: Iterable[Sequence[Dispatch]]) -> Recording:
        return record([one] for phase in phases for one in phase)

    device.runtime.record = one_by_one  # type: ignore[method-assign]
    results = [
        result for case in cases_for(device.info) if case.name in CASES for result in check_case(device, case)
    ]
    problems = [result.problem for result in results if result.problem]
    print(f"{len(results)} results, {len(problems)} problems")


if __name__ == "__main__":
    main(planted="--planted" in sys.argv)
