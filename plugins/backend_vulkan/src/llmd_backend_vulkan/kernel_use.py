"""What a stage says of its shaders."""

from __future__ import annotations

from llmd.api.kernel_use import KernelUse, SlowPath
from llmd_backend_vulkan.runtime import BUILD, Runtime


def kernel_use(runtime: Runtime, *, streams: bool) -> KernelUse:
    """Return how the shaders of a stage run; ``streams``: weights of some parts are streamed."""
    names = ["one order of sums"]
    slow = []
    if runtime.has_additions:
        names.append("recordings that run without waits")
        if streams:
            other = len(runtime.device.queues) > 1
            names.append(f"streamed weights on {'a second queue' if other else 'the queue that computes'}")
    else:
        what = "waits for each phase of a step, because Kompute lacks llmd's additions"
        slow.append(SlowPath(what, f"build Kompute with them: `{BUILD}`"))
        if streams:
            names.append("streamed weights are read from main memory")
    return KernelUse(tuple(names), tuple(slow))
