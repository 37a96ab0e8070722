"""Runs conformance cases, for the Khronos validation layer.

``--no-barrier`` leaves out a barrier instead, ``--no-semaphores`` what orders copies and shaders.

The layer looks at whole buffers, and dispatches of one phase use disjoint parts of a buffer. So there is a
barrier between any two dispatches here; `test_phases.py` runs those of a phase in another order.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence

from msgspec.structs import replace

from llmd.api import DeviceOptions
from llmd.testing.conformance import cases_for, check_case
from llmd_backend_vulkan import runtime
from llmd_backend_vulkan.commands import Segment, Submission, submissions_of
from llmd_backend_vulkan.device import VulkanDevice
from llmd_backend_vulkan.memory import copy
from llmd_backend_vulkan.probe import find_devices
from llmd_backend_vulkan.runtime import Recording
from llmd_backend_vulkan.vulkan import CPU

CASES = (
    "program/full-f32-kv-int8",
    "program/window-bf16",
    "program/hybrid",
    "program/taps",
    "program/encoder-score",
    "program/q6_k-activations-f32",
    "attention/long-f16",
    "attention/long-int4",
    "attention/long-latent-f16",
    "attention/long-sinks-f16",
    "attention/shared-f16",
    "experts/limit",
    "router/groups",
    "router/given",
    "indexer/shared",
    "gated_delta/grouped",
    "state_space/bounds",
    "generalized_delta/mixed",
    "head_linear/f16-wide",
    "join/heads",
    "merge_attention/chosen-f16",
    "mix_streams/4-20",
    "program/full-f16",
    "program/streamed",
    "program/streamed-in-part",
)


def main(planted: str) -> None:
    """Run the cases, and print how many results there were."""
    physical = next(device for device in find_devices() if device.kind == CPU)
    device = VulkanDevice(physical, DeviceOptions())
    if planted == "--no-barrier":
        buffers = [device.runtime.allocate(64) for _ in range(3)]
        first, second = (copy(a, 0, b, 0, 64) for a, b in itertools.pairwise(buffers))
        device.runtime.run([[first, second]])
        return
    names: tuple[str, ...] = CASES
    if planted == "--no-semaphores":
        names = ("program/streamed",)
        vars(runtime)["submissions_of"] = without_semaphores
    record = device.runtime.record_segments

    def one_by_one(segments: Sequence[Segment], *, keeps_times: bool = False) -> Recording:
        apart = [
            replace(segment, phases=[[one] for phase in segment.phases for one in phase])
            for segment in segments
        ]
        return record(apart, keeps_times=keeps_times)

    device.runtime.record_segments = one_by_one  # type: ignore[method-assign]
    results = [
        result for case in cases_for(device.info) if case.name in names for result in check_case(device, case)
    ]
    problems = [result.problem for result in results if result.problem]
    print(f"{len(results)} results, {len(problems)} problems")


def without_semaphores(segments: Sequence[Segment], *, has_barriers: bool) -> list[Submission]:
    """Cut segments into submissions that wait for nothing."""
    found = submissions_of(segments, has_barriers=has_barriers)
    return [replace(one, waits=(), signals=()) for one in found]


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]))
