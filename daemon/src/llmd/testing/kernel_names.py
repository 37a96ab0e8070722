"""Whether a stage says which kernels it uses (`llmd.api.features.KERNELS`)."""

from __future__ import annotations

from contextlib import ExitStack

from llmd.api import Device
from llmd.api.kernel_use import NamesKernels
from llmd.testing.step_times import stage_of_parts
from llmd.testing.workload import Workload


def wrong_kernels(device: Device, workload: Workload) -> str:
    """Return what is wrong with the kernels that a new stage names, or an empty text."""
    with ExitStack() as stack:
        stage = stage_of_parts(device, workload, workload.first_part, workload.last_part, stack)
        if not isinstance(stage, NamesKernels):
            return "its stages have no method `kernels`"
        use = stage.kernels()
    texts = (*use.names, *(path.what for path in use.slow))
    return "" if texts and all(texts) else "it names no kernels, or one without a name"
