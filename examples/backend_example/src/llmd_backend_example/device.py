"""The device: this machine's CPU, used through NumPy."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from llmd.api import (
    PLAIN_FORMATS,
    DeviceInfo,
    DeviceProfile,
    LoadedWeights,
    Program,
    Progress,
    Refusal,
    TensorSource,
)
from llmd.api.machine import available_bytes, cache_bytes
from llmd_backend_example.kernels import KERNELS
from llmd_backend_example.kernels.linear import LinearKernel
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

    def benchmark(self, budget_s: float) -> DeviceProfile:
        """Measure the rates. The matrix must not fit in the caches, or the rates would be too high for a
        model.
        """
        num_rows = max(1024, 2 * cache_bytes() // (4 * 4096))
        matrix = np.ones((num_rows, 4096), np.float32)
        multiply = LinearKernel([matrix], [None])
        one, many = np.ones((1, 4096), np.float32), np.ones((256, 4096), np.float32)
        reads = _runs_per_s(matrix.sum, budget_s / 3)
        decodes = _runs_per_s(lambda: multiply.rows(one), budget_s / 3)
        prefills = _runs_per_s(lambda: multiply.rows(many), budget_s / 3)
        return DeviceProfile(
            read_bytes_per_s=reads * matrix.nbytes,
            decode_bytes_per_s={"f32": decodes * matrix.nbytes},
            prefill_flops_per_s=prefills * 2 * matrix.size * len(many),
        )

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
