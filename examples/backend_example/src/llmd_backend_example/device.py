"""The device: this machine's CPU, used through NumPy."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from llmd.api import (
    PLAIN_FORMATS,
    DeviceInfo,
    LoadedWeights,
    Program,
    Progress,
    Refusal,
    TensorSource,
)
from llmd.api.machine import available_bytes, cache_bytes
from llmd_backend_example.kernels import KERNELS
from llmd_backend_example.loading import ExampleParts, load_parts


def describe() -> DeviceInfo:
    """Return what the planner knows before the device is opened. Claim only what `llmd check` confirms."""
    return DeviceInfo(
        name="example",
        kind="example",
        score=1,  # the usable device with the highest score is the default
        memory_bytes=available_bytes(),
        formats=PLAIN_FORMATS,
        kv_dtypes=("f32", "f16"),
        ops=tuple(KERNELS),
        row_exact=False,  # the summation order of BLAS depends on the number of rows
        description=f"NumPy {np.__version__}",
    )


class ExampleDevice:
    """See `llmd.api.Device`."""

    def __init__(self) -> None:
        self.info = describe()

    def check(self, program: Program) -> list[Refusal]:
        """Return why the program cannot run here, beyond what ``info`` says; empty if it can."""
        formats = {weight.format for weight in program.weights} - set(self.info.formats)
        return [
            Refusal(f"format {name}", "this device supports only plain formats") for name in sorted(formats)
        ]

    def read_rate(self, budget_s: float) -> float:
        """Return the bytes per second of reading memory. It must not fit in the caches."""
        memory = np.ones(max(4 << 20, 2 * cache_bytes() // 4), np.float32)
        return memory.nbytes * _runs_per_s(memory.sum, budget_s)

    def free_bytes(self) -> int:
        """Return what is free now, in the memory that ``info.memory_id`` names: by default, main memory."""
        return available_bytes()

    def load(
        self,
        program: Program,
        tensors: TensorSource,
        progress: Progress,
        have: Sequence[LoadedWeights] = (),
    ) -> ExampleParts:
        """Load the weights in the layout of the kernels; nothing is taken from ``have``."""
        return load_parts(program, tensors, progress)

    def close(self) -> None:
        """Free the device's resources: there are none beyond those of its weights and stages."""


def _runs_per_s(run: Callable[[], object], budget_s: float) -> float:
    """Return the runs per second, measured for about ``budget_s`` seconds."""
    run()  # the first run touches new memory
    start, runs = time.perf_counter(), 0
    while not runs or time.perf_counter() - start < budget_s:
        run()
        runs += 1
    return runs / (time.perf_counter() - start)
