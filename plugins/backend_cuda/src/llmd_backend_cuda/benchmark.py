"""Measure a card: how fast memory is read, and how fast rows are multiplied by matrices."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable

from llmd.api import DeviceProfile, Format, Program, StageLimits
from llmd_backend_cuda.context import Context, StepArgs
from llmd_backend_cuda.matrices import DeviceMatrix, MatrixForm, MatrixSize
from llmd_backend_cuda.ops.linear import OutputArgs, Product, RowsArgs, launch_product, partial_bytes
from llmd_backend_cuda.runtime import KernelSpec, Launch, Memory, Runtime

MEASURED_FORMATS: tuple[Format, ...] = ("f16", "q8", "q4")
"""Formats of which the rate of decoding is measured."""

_READ_BYTES = 1 << 30
_PIECE_BYTES = 16384
_SIZE = 8192
_PREFILL_ROWS = 256


class ReadArgs(ctypes.Structure):
    """``struct Args`` of ``kernels/read_memory.cu``."""

    _fields_ = (("memory", ctypes.c_void_p), ("num_bytes", ctypes.c_int64), ("out", ctypes.c_void_p))


def measure(runtime: Runtime, budget_s: float) -> DeviceProfile:
    """Measure for about ``budget_s`` seconds."""
    share_s = budget_s / (2 + len(MEASURED_FORMATS))
    read = _read_rate(runtime, share_s)
    bench = _Products(runtime)
    decode = {name: min(read, bench.decode_rate(name, share_s)) for name in MEASURED_FORMATS}
    return DeviceProfile(
        read_bytes_per_s=read, decode_bytes_per_s=decode, prefill_flops_per_s=bench.prefill_rate(share_s)
    )


def _read_rate(runtime: Runtime, budget_s: float) -> float:
    """Return the bytes per second of reading memory."""
    size = min(_READ_BYTES, runtime.free_bytes() // 4) // _PIECE_BYTES * _PIECE_BYTES
    memory, out = runtime.allocate(size), runtime.allocate(4)
    runtime.fill_zero(memory)
    kernel = runtime.kernel(KernelSpec.of("read_memory", "read_memory"))
    launch = Launch(
        kernel, (4 * runtime.num_processors, 1, 1), 256, ReadArgs(memory.pointer, size, out.pointer)
    )
    return size * runs_per_s(runtime, lambda: runtime.launch(launch), budget_s)


class _Products:
    """Products with square matrices that are larger than caches."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._x = runtime.allocate(4 * _PREFILL_ROWS * _SIZE)
        self._out = runtime.allocate(4 * _PREFILL_ROWS * _SIZE)
        runtime.fill_zero(self._x)
        limits = StageLimits(_PREFILL_ROWS, 1, 1)
        self._context = Context(
            runtime,
            _NO_PROGRAM,
            limits,
            StepArgs(),
            (),
            (),
            (),
            rounded=runtime.allocate(2 * _PREFILL_ROWS * _SIZE),
            partials=runtime.allocate(partial_bytes(limits, runtime.num_processors)),
        )

    def decode_rate(self, name: Format, budget_s: float) -> float:
        """Return the bytes per second of weights of a format, for one row."""
        size = MatrixSize(MatrixForm.of(name, _SIZE), _SIZE, _SIZE)
        return size.num_bytes * self._runs_per_s(size, 1, budget_s)

    def prefill_rate(self, budget_s: float) -> float:
        """Return the operations per second for many rows; a multiply-add counts as two."""
        size = MatrixSize(MatrixForm.of("f16", _SIZE), _SIZE, _SIZE)
        return 2 * _SIZE * _SIZE * _PREFILL_ROWS * self._runs_per_s(size, _PREFILL_ROWS, budget_s)

    def _runs_per_s(self, size: MatrixSize, rows: int, budget_s: float) -> float:
        matrix = DeviceMatrix(self._runtime, size)
        for memory in (matrix.low, matrix.high, matrix.scales, matrix.minimums):
            _zero(self._runtime, memory)
        output = OutputArgs(out=self._out.pointer, scale=1.0, width=size.out, tiles=size.tiles)
        product = Product(RowsArgs(x=self._x.pointer, width=size.width), [output], [matrix])
        launches = tuple(launch_product(self._context, product, rows))

        def run() -> None:
            for launch in launches:
                self._runtime.launch(launch)

        return runs_per_s(self._runtime, run, budget_s)


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


def _zero(runtime: Runtime, memory: Memory | None) -> None:
    if memory is not None:
        runtime.fill_zero(memory)


_NO_PROGRAM = Program(0, 0, 0, 0, 0, (), (), (), (), (), None, None)
