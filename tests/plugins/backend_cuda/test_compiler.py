"""Kernels compile for an architecture without a GPU, and the assembler's figures are read from the log."""

from __future__ import annotations

import pytest

from llmd.api import DeviceError
from llmd_backend_cuda.compiler import (
    HEADERS,
    KernelFigures,
    architecture_of,
    compile_source,
    compiler_version,
    figures,
    supported_architectures,
)
from llmd_backend_cuda.runtime import KernelSpec

LOG_OF_CUDA_12 = """\
ptxas info    : 17 bytes gmem, 40 bytes cmem[4]
ptxas info    : Compiling entry function 'attention' for 'sm_80'
ptxas info    : Function properties for attention
ptxas         .     88 bytes stack frame, 80 bytes spill stores, 164 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 88 bytes cumulative stack size, 43056 bytes smem, 456 bytes cmem[0]
ptxas info    : Compile time = 89.109 ms
ptxas info    : Compiling entry function 'join_parts' for 'sm_80'
ptxas info    : Function properties for join_parts
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 32 registers, 456 bytes cmem[0]
"""


def test_machine_code_has_the_figures_of_each_kernel() -> None:
    compiled = compile_source(KernelSpec.of("elementwise", "", {"ACTIVATION": 1}), "sm_90")
    assert compiled.code.startswith(b"\x7fELF")
    found = figures(compiled.log)
    kernels = ("add_rows", "multiply_rows", "join_rows", "glu_rows", "activate_rows", "gate_rows")
    assert set(found) == {*kernels}
    assert all(kernel.registers > 0 and kernel.stack_bytes == 0 for kernel in found.values())


def test_ptx_is_for_cards_that_are_newer_than_the_compiler() -> None:
    compiled = compile_source(KernelSpec.of("elementwise", ""), "compute_90")
    assert b".target sm_90" in compiled.code


def test_an_error_names_the_file_the_architecture_and_the_line() -> None:
    expected = r"elementwise\.cu does not compile for sm_90(.|\n)*gpu\.cuh\(\d+\): error"
    with pytest.raises(DeviceError, match=expected):
        compile_source(KernelSpec.of("elementwise", "", {"float": ")"}), "sm_90")


def test_figures_are_read_from_the_log() -> None:
    assert figures(LOG_OF_CUDA_12) == {
        "attention": KernelFigures(registers=255, shared_bytes=43056, stack_bytes=88, spill_bytes=244),
        "join_parts": KernelFigures(registers=32, shared_bytes=0, stack_bytes=0, spill_bytes=0),
    }


@pytest.mark.parametrize(
    ("capability", "architecture"),
    [
        ((7, 5), "sm_75"),
        ((8, 7), "sm_87"),
        ((8, 8), "sm_86"),  # 87 is of another kind of chip
        ((8, 9), "sm_89"),
        ((9, 0), "sm_90"),
        ((12, 1), "sm_120"),
        ((13, 0), "compute_120"),
    ],
)
def test_the_architecture_of_a_card(capability: tuple[int, int], architecture: str) -> None:
    assert architecture_of(capability, (75, 80, 86, 87, 89, 90, 120)) == architecture


def test_a_card_may_be_older_than_the_compiler_knows() -> None:
    with pytest.raises(DeviceError, match=r"does not compile for compute capability 7\.0"):
        architecture_of((7, 0), (75, 80))


def test_the_compiler_knows_the_architectures_of_the_backend() -> None:
    assert compiler_version() >= (12, 8)
    assert {75, 80, 89, 90, 120} <= set(supported_architectures())


def test_headers_are_found() -> None:
    assert {"gpu.cuh", "step.cuh"} <= set(HEADERS)
