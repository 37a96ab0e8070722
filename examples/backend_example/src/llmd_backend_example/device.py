"""The device: this machine's processor, through NumPy."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from llmd.api import PLAIN_FORMATS, DeviceInfo, DeviceProfile, Program, Progress, Refusal, TensorSource
from llmd.api.machine import available_bytes, cache_bytes
from llmd_backend_example.kernels import KERNELS
from llmd_backend_example.kernels.linear import LinearKernel
from llmd_backend_example.loading import ExampleParts, load_parts


def describe() -> DeviceInfo:
    """What the planner may know before the device is opened. Claim nothing that `llmd check` does not see."""
    return DeviceInfo(
        name="example",
        kind="example",
        score=1,  # the usable device with the highest score is the default one
        memory_bytes=available_bytes(),
        formats=PLAIN_FORMATS,
        kv_dtypes=("f32", "f16"),
        ops=tuple(KERNELS),
        row_exact=False,  # BLAS adds up in an order that depends on how many rows there are
        description=f"NumPy {np.__version__}",
    )


class ExampleDevice:
    """See `llmd.api.Device`."""

    def __init__(self) -> None:
        self.info = describe()

    def check(self, program: Program) -> list[Refusal]:
        """Every reason why the program cannot run here, but for what ``info`` says anyway; empty means that it can."""
        formats = {weight.format for weight in program.weights} - set(self.info.formats)
        return [
            Refusal(f"format {name}", "this device holds plain numbers alone") for name in sorted(formats)
        ]

    def benchmark(self, budget_s: float) -> DeviceProfile:
        """Measured rates. A matrix that the caches hold would promise what no model gets."""
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

    def load(self, program: Program, tensors: TensorSource, progress: Progress) -> ExampleParts:
        """Take the weights, in the layout that the kernels want."""
        return load_parts(program, tensors, progress)

    def close(self) -> None:
        """Free what the device holds: nothing but what its parts and stages free themselves."""


def _runs_per_s(run: Callable[[], object], budget_s: float) -> float:
    """Runs a second, measured for about ``budget_s`` seconds."""
    run()  # the first one touches memory for the first time
    start, runs = time.perf_counter(), 0
    while not runs or time.perf_counter() - start < budget_s:
        run()
        runs += 1
    return runs / (time.perf_counter() - start)
