"""Kernels are told apart by file, name and definitions."""

from __future__ import annotations

from llmd_backend_cuda.runtime import KernelSpec


def test_the_order_of_definitions_does_not_matter() -> None:
    one = KernelSpec.of("gemv", "gemv", {"BITS": 4, "GROUP": 32})
    assert one == KernelSpec.of("gemv", "gemv", {"GROUP": 32, "BITS": 4})
    assert one.defines == (("BITS", 4), ("GROUP", 32))
    assert hash(one) == hash(KernelSpec("gemv", "gemv", one.defines))


def test_other_definitions_make_another_kernel() -> None:
    plain = KernelSpec.of("gemm", "gemm")
    assert plain.defines == ()
    others = {
        plain,
        KernelSpec.of("gemm", "add_slices"),
        KernelSpec.of("gemm", "gemm", {"ROWS": 16}),
        KernelSpec.of("gemm", "gemm", {"ROWS": 32}),
    }
    assert len(others) == 4
