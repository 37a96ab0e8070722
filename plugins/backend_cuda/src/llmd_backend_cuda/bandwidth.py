"""Measure how fast a card reads its memory."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable

from llmd_backend_cuda.runtime import KernelSpec, Launch, Runtime

_READ_BYTES = 1 << 30
_PIECE_BYTES = 16384


class ReadArgs(ctypes.Structure):
    """``struct Args`` of ``kernels/read_memory.cu``."""

    _fields_ = (("memory", ctypes.c_void_p), ("num_bytes", ctypes.c_int64), ("out", ctypes.c_void_p))


def read_rate(runtime: Runtime, budget_s: float) -> float:
    """Return the bytes per second of reading memory, measured for about ``budget_s`` seconds."""
    size = min(_READ_BYTES, runtime.free_bytes() // 4) // _PIECE_BYTES * _PIECE_BYTES
    memory, out = runtime.allocate(size), runtime.allocate(4)
    runtime.fill_zero(memory)
    kernel = runtime.kernel(KernelSpec.of("read_memory", "read_memory"))
    launch = Launch(
        kernel, (4 * runtime.num_processors, 1, 1), 256, ReadArgs(memory.pointer, size, out.pointer)
    )
    return size * runs_per_s(runtime, lambda: runtime.launch(launch), budget_s)


def runs_per_s(runtime: Runtime, run: Callable[[], object], budget_s: float) -> float:
    """Return how often the device runs something per second, measured for about ``budget_s`` seconds."""
    run()
    runtime.synchronize()
    start_s = time.perf_counter()
    runs = 0
    while (elapsed_s := time.perf_counter() - start_s) < budget_s or not runs:
        for _ in range(10):
            run()
        runtime.synchronize()
        runs += 10
    return runs / elapsed_s if elapsed_s else 0.0
