"""The time that NVIDIA's library cuBLAS takes for the matrix products of a prompt: a peer for prefill."""

from __future__ import annotations

import ctypes
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any

import numpy as np

from bench.shapes import Shape

TIMED_RUNS, WARM_UP_RUNS = 20, 3
_HALF, _COMPUTE_IN_FLOAT, _TRANSPOSED, _PLAIN, _ANY_ALGORITHM = 2, 68, 1, 0, -1
_POOL = 1 << 20


class MissingLibraryError(Exception):
    """cuBLAS is not installed; the message says what is missing."""


def load() -> tuple[Any, Any]:
    """Return CuPy's bindings of the CUDA runtime and of cuBLAS.

    Raises:
        MissingLibraryError: there is no cuBLAS. CuPy's packages do not contain it.
    """
    try:
        from cupy_backends.cuda.api import runtime
        from cupy_backends.cuda.libs import cublas
    except (ImportError, OSError, RuntimeError) as error:
        raise MissingLibraryError(str(error).splitlines()[0]) from error
    return runtime, cublas


def prompt_s(shape: Shape, prompt_len: int, device: int, api: Any, blas: Any) -> float:
    """Return the seconds of all matrix products of a prompt: weights and rows in float16, sums in float32.

    ``api`` and ``blas`` are from `load`. Each shape of a matrix is timed alone. The head multiplies one row.
    """
    api.setDevice(device)
    with ExitStack() as stack:
        handle = blas.create()
        stack.callback(blas.destroy, handle)
        layers = Counter(
            dims for name, dims in shape.tensors().items() if ".layers." in name and len(dims) == 2
        )
        seconds = 0.0
        for dims, count in layers.items():
            seconds += count * product_s(handle, dims, prompt_len, api, blas)
        return seconds + product_s(handle, (shape.vocab, shape.hidden), 1, api, blas)


def product_s(handle: int, dims: tuple[int, ...], rows: int, api: Any, blas: Any) -> float:
    """Return the seconds in which ``rows`` rows are multiplied by a matrix ``[out, in]``."""
    with ExitStack() as stack:
        return prepared_product(handle, dims, rows, api, blas, stack)()


def prepared_product(
    handle: int, dims: tuple[int, ...], rows: int, api: Any, blas: Any, stack: ExitStack
) -> Callable[[], float]:
    """Return a function that measures the seconds of a product; its arrays are freed with ``stack``."""
    outputs, inputs = dims
    one, zero = ctypes.c_float(1.0), ctypes.c_float(0.0)
    matrix, x, y = _arrays((outputs * inputs, rows * inputs, rows * outputs), api, stack)

    def run() -> None:
        # cuBLAS counts columns first: it reads the matrix as its transpose.
        blas.gemmEx(
            handle, _TRANSPOSED, _PLAIN, outputs, rows, inputs,
            ctypes.addressof(one), matrix, _HALF, inputs, x, _HALF, inputs,
            ctypes.addressof(zero), y, _HALF, outputs, _COMPUTE_IN_FLOAT, _ANY_ALGORITHM,
        )  # fmt: skip

    return lambda: seconds_of(run, api.deviceSynchronize)


def seconds_of(run: Callable[[], None], wait: Callable[[], object]) -> float:
    """Return the seconds of a run, of some in a row after a few that do not count."""
    for _ in range(WARM_UP_RUNS):
        run()
    wait()
    start_s = time.perf_counter()
    for _ in range(TIMED_RUNS):
        run()
    wait()
    return (time.perf_counter() - start_s) / TIMED_RUNS


def _arrays(sizes: Iterable[int], api: Any, stack: ExitStack) -> list[int]:
    """Return arrays of float16 in the card's memory. Zeros would draw less power, and run faster."""
    pool = np.random.default_rng(1).integers(0, 1 << 16, _POOL, dtype=np.uint16) & 0x83FF | 0x3000
    pointers = []
    for size in sizes:
        values = np.resize(pool, size)
        pointer = api.malloc(values.nbytes)
        stack.callback(api.free, pointer)
        api.memcpy(pointer, values.ctypes.data, values.nbytes, api.memcpyHostToDevice)
        pointers.append(pointer)
    return pointers
