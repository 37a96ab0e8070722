"""The products that cuBLAS is timed for are those of a prompt; a stand-in computes them with NumPy."""

from __future__ import annotations

import ctypes
import sys
from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray

from bench import cublas
from bench.cublas import TIMED_RUNS, WARM_UP_RUNS, MissingLibraryError, load, prompt_s
from bench.shapes import Shape
from tests.cuda.host_cuda import HostCuda

SHAPE = Shape("tiny", 64, 3, 4, 2, 16, 128, 300, tied=False, context=256)
RUNS = TIMED_RUNS + WARM_UP_RUNS


class Runtime(HostCuda):
    """Bindings of the CUDA runtime that copy at once."""

    def memcpy(self, to: int, source: int, num_bytes: int, kind: int) -> None:
        assert kind == self.memcpyHostToDevice
        ctypes.memmove(to, source, num_bytes)

    def deviceSynchronize(self) -> None:  # noqa: N802 - the name of CuPy
        """Everything ran at once."""


class Blas:
    """``cublas.gemmEx``, for the one layout that is used: ``y = x @ matrix.T``, all row by row."""

    def __init__(self) -> None:
        self.products: Counter[tuple[int, int, int]] = Counter()
        self.handles = 0

    def create(self) -> int:
        self.handles += 1
        return 7

    def destroy(self, handle: int) -> None:
        self.handles -= 1

    def gemmEx(self, handle: int, *arguments: int) -> None:  # noqa: N802 - the name of CuPy
        """Multiply as the documentation of cuBLAS says, which counts columns first."""
        (of_a, of_b, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c, c_type, ldc, compute, _) = (
            arguments
        )
        assert (handle, of_a, of_b, a_type, b_type, c_type, compute) == (7, 1, 0, 2, 2, 2, 68)
        factors = [ctypes.c_float.from_address(one).value for one in (alpha, beta)]
        assert factors == [1.0, 0.0]
        left = columns(a, lda, m)[:k].T  # stored transposed
        out = columns(c, ldc, n)
        out[:m] = (left.astype(np.float32) @ columns(b, ldb, n)[:k].astype(np.float32)).astype(np.float16)
        self.products[m, n, k] += 1
        self.last = (left.copy(), columns(b, ldb, n).copy(), out.copy())


def columns(address: int, height: int, count: int) -> NDArray[np.float16]:
    """Return a matrix whose columns lie one after the other."""
    values = (ctypes.c_uint16 * (height * count)).from_address(address)
    return np.ctypeslib.as_array(values).view(np.float16).reshape(count, height).T


def test_each_matrix_of_a_layer_and_the_head_are_timed_once() -> None:
    runtime, blas = Runtime(), Blas()
    assert prompt_s(SHAPE, 20, 3, runtime, blas) > 0
    # Matrices of equal sizes are timed together: q and o, k and v, gate and up.
    assert blas.products == {
        (64, 20, 64): RUNS,
        (32, 20, 64): RUNS,
        (128, 20, 64): RUNS,
        (64, 20, 128): RUNS,
        (300, 1, 64): RUNS,
    }
    assert blas.handles == 0
    assert runtime.alive == {}, "all memory is freed"
    assert set(runtime.devices) == {3}
    matrix, x, y = blas.last
    assert np.isfinite(y).all()
    np.testing.assert_allclose(y, matrix.astype(np.float32) @ x.astype(np.float32), rtol=1e-2, atol=1e-2)
    assert len(np.unique(matrix)) > 100, "the values are random"


def test_every_layer_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cublas, "product_s", lambda _handle, dims, rows, *_: dims[0] * dims[1] * rows)
    expected = 20 * SHAPE.products + SHAPE.head_products
    assert prompt_s(SHAPE, 20, 0, Runtime(), Blas()) == expected


def test_a_missing_library_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy_backends.cuda.libs", None)
    with pytest.raises(MissingLibraryError, match=r"cupy_backends\.cuda\.libs"):
        load()
