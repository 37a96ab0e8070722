"""Compile kernels with NVRTC for an architecture; needs no GPU and no driver."""

from __future__ import annotations

import ctypes
import functools
import re
import sys
from collections.abc import Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable

import msgspec

from llmd.api.errors import DeviceError
from llmd_backend_cuda.runtime import KernelSpec

# --fmad=false: products and sums are fused only where a kernel says fmaf. Else the compiler decides for each
# variant of a kernel, and a row may get other bits in a batch of another size.
# Not --restrict: kernels may change a slot in place, so two pointers may refer to the same elements.
# Not --use_fast_math: it flushes denormal numbers to zero and divides with fewer correct bits.
OPTIONS = ("--std=c++17", "--device-as-default-execution-space", "--fmad=false", "--ptxas-options=-v")
"""Options of every compilation."""

INSTALL = f"run `{sys.executable} -m pip install 'cupy-cuda12x>=14,<16' 'nvidia-cuda-nvrtc-cu12>=12.8'`"
"""What to do if CuPy or NVRTC is missing: install what the extra ``cuda12`` of this distribution has."""

_INTEGRATED_CHIPS = frozenset({53, 62, 72, 87, 101, 110})
"""Architectures of chips with a processor of their own: other cards do not run their machine code."""


def _kernel_folder() -> Traversable:
    return resources.files(__package__) / "kernels"


def header_names() -> tuple[str, ...]:
    """Return the names of all files that kernels may include, sorted."""
    return tuple(sorted(file.name for file in _kernel_folder().iterdir() if file.name.endswith(".cuh")))


ONLY_FOR = {"gemm_warpgroup": "sm_90a"}
"""Sources with instructions of one architecture, which no later one has: they are always compiled for it."""

HEADERS = header_names()
"""Files that kernels may include: all ``.cuh`` files in ``kernels/``."""


class Compiled(msgspec.Struct, frozen=True):
    """Machine code of a source file with one set of definitions."""

    code: bytes
    """A cubin; PTX for an architecture ``compute_…``."""
    log: str
    """What the compiler said, with registers, spills and shared memory of each kernel."""


class KernelFigures(msgspec.Struct, frozen=True):
    """What a kernel takes of a multiprocessor, as the assembler reports it."""

    registers: int
    """Registers of a thread."""
    shared_bytes: int
    """Static shared memory of a block."""
    stack_bytes: int
    """Local memory of a thread for arrays and calls."""
    spill_bytes: int
    """Bytes that a thread stores to and loads from local memory because it has too few registers."""


def read_source(name: str) -> str:
    """Return the text of a file in ``kernels/``."""
    return (_kernel_folder() / name).read_text(encoding="utf-8")


def compile_source(spec: KernelSpec, architecture: str) -> Compiled:
    """Compile the source of a kernel for an architecture.

    ``sm_90`` results in machine code, ``compute_90`` in PTX. Several threads may compile at the same time.
    A source that is for one architecture only is compiled for that.

    Raises:
        DeviceError: the compiler refused it.
    """
    from cupy_backends.cuda.libs import nvrtc

    names = header_names()
    texts = [read_source(name).encode() for name in names]
    source = f"{spec.source}.cu"
    architecture = ONLY_FOR.get(spec.source, architecture)
    defines = [f"-D{name}={value}" for name, value in spec.defines]
    program = nvrtc.createProgram(read_source(source), source, texts, [name.encode() for name in names])
    try:
        nvrtc.compileProgram(program, [*OPTIONS, f"--gpu-architecture={architecture}", *defines])
        code = nvrtc.getPTX(program) if architecture.startswith("compute_") else nvrtc.getCUBIN(program)
        return Compiled(code, _text(nvrtc.getProgramLog(program)))
    except nvrtc.NVRTCError as error:
        log = _text(nvrtc.getProgramLog(program))
        raise DeviceError(f"{source} does not compile for {architecture}: {error}\n{log}") from error
    finally:
        nvrtc.destroyProgram(program)


def _text(log: str) -> str:
    return log.rstrip("\0 \n")  # it ends with more than one zero byte


def architecture_of(capability: tuple[int, int], supported: Sequence[int]) -> str:
    """Return the architecture to compile for, so that a card of this compute capability runs the code.

    ``supported`` are the architectures of the compiler, such as 75 or 120. Machine code runs on cards of the
    same generation that are not older. A card of a later generation gets PTX, which its driver compiles.

    Raises:
        DeviceError: the compiler is too new for the card.
    """
    own = capability[0] * 10 + capability[1]
    if own in supported:
        return f"sm_{own}"
    older = [one for one in supported if one < own and one not in _INTEGRATED_CHIPS]
    if not older:
        raise DeviceError(
            f"NVRTC {'.'.join(map(str, compiler_version()))} does not compile for compute capability"
            f" {capability[0]}.{capability[1]}",
            hint=f"use CuPy for an older version of CUDA: {INSTALL}",
        )
    newest = max(older)
    return f"sm_{newest}" if newest // 10 == capability[0] else f"compute_{newest}"


def supported_architectures() -> tuple[int, ...]:
    """Return the architectures that NVRTC compiles for, such as 75 or 120."""
    from cupy_backends.cuda.libs import nvrtc

    return tuple(nvrtc.getSupportedArchs())


@functools.cache
def compiler_version() -> tuple[int, int]:
    """Return the version of NVRTC.

    CuPy's function does the same, but imports all of CuPy, which takes a second.

    Raises:
        DeviceError: there is no NVRTC.
    """
    try:
        from cuda import pathfinder

        library = ctypes.CDLL(pathfinder.load_nvidia_dynamic_lib("nvrtc").abs_path)
    except (ImportError, OSError, RuntimeError) as error:
        raise DeviceError("NVRTC, the compiler of CUDA, is missing", hint=INSTALL) from error
    major, minor = ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


def figures(log: str) -> Mapping[str, KernelFigures]:
    """Return the figures of each kernel that a log of the assembler names.

    Functions that are called instead of inlined have figures, too; only their stack and spills are known.
    """
    found: dict[str, dict[str, int]] = {}
    name = ""
    for line in log.splitlines():
        if named := re.search(r"Compiling entry function '(\w+)'|Function properties for '?(\w+)'?", line):
            name = named[1] or named[2]
            found.setdefault(name, {"registers": 0, "shared_bytes": 0, "stack_bytes": 0, "spill_bytes": 0})
        elif frame := re.search(
            r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line
        ):
            found[name]["stack_bytes"] = int(frame[1])
            found[name]["spill_bytes"] = int(frame[2]) + int(frame[3])
        elif used := re.search(r"Used (\d+) registers", line):
            shared = re.search(r"(\d+) bytes smem", line)
            found[name]["registers"] = int(used[1])
            found[name]["shared_bytes"] = int(shared[1]) if shared else 0
    return {name: KernelFigures(**values) for name, values in found.items()}
