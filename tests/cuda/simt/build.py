"""Compile kernels for the host, with the engine that runs their threads."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

import llmd_backend_cuda
from llmd.api.errors import DeviceError

UNUSED_S = 2 * 24 * 3600
"""Libraries that no test needed for so long are deleted."""
HERE = Path(__file__).parent
KERNELS = Path(llmd_backend_cuda.__file__).parent / "kernels"
Defines = tuple[tuple[str, int | str], ...]
"""Macros and their values."""
OPTIONS = (
    "-Og",
    "-g1",
    "-gdwarf-4",
    "-std=c++17",
    "-fPIC",
    "-fno-strict-aliasing",
    "-ffp-contract=off",
    "-w",
    "-fmax-errors=5",
)
LINKING = ("-shared", "-Wl,-Bsymbolic-functions")
"""So that a kernel is called, not a function of the same name in another library: zlib has ``compress``."""
CHECKS = ("-fsanitize=alignment,bounds,shift-exponent,signed-integer-overflow,integer-divide-by-zero",)
_KERNEL = re.compile(
    r'extern "C" __attribute__\(\(noinline\)\) void\s+'
    r"(?:__attribute__\(\(simt_bounds\((?P<bounds>.*?)\)\)\)\s*)?(?P<name>\w+)\s*\(",
    re.DOTALL,
)
_FOLDER_OF_LINE = re.compile(r'^(# \d+ ")[^"\n]*/', re.MULTILINE)
_SHARED = re.compile(
    r'(static __attribute__\(\(section\("llmd_shared"\)\)\))\s+(?P<type>[\w:]+(?:<[^;>]*>)?)\s'
)
_WRAPPER = """
#include "c_math.hpp"
#include "half.hpp"
#include "launch.hpp"
namespace {{
#include "gpu.cuh"
#include "overlap.hpp"
#include "{source}"
}}
"""
_TRAMPOLINE = """
extern "C" const char* run_{name}(const simt::Request* request) {{
  constexpr int bounds[] = {{{bounds}}};
  return simt::run_kernel("{name}", {name}, bounds[0], *request);
}}
"""


def compiler() -> str | None:
    """Return the C++ compiler; None if there is none that can compile kernels."""
    return shutil.which("g++")


@cache
def engine() -> ctypes.CDLL:
    """Return the library that runs threads; compile it if it was not compiled before."""
    library = ctypes.CDLL(str(_engine_path()))
    library.simt_allocate.restype = ctypes.c_void_p
    library.simt_allocate.argtypes = (ctypes.c_size_t,)
    library.simt_track_writes.restype = None
    library.simt_forget_writes.restype = None
    library.simt_allow_host.restype = None
    library.simt_allow_host.argtypes = (ctypes.c_void_p,)
    library.simt_release.restype = None
    library.simt_release.argtypes = (ctypes.c_void_p,)
    return library


@cache
def compile_kernels(name: str, defines: Defines, folders: tuple[Path, ...]) -> Path:
    """Return a library with a function ``run_NAME`` for each kernel of the first ``name.cu`` in the folders.
    A process reads a file once.

    Raises:
        DeviceError: there is no such file, or the compiler refused it.
    """
    source = next((path for folder in folders if (path := folder / f"{name}.cu").is_file()), None)
    if source is None:
        raise DeviceError(f"there is no kernel file {name}.cu")
    text = _preprocess(source, defines, folders)
    # A GPU aligns shared variables as their type needs, and a compiler for the host more than that.
    kernels = [(match["name"], match["bounds"] or "1024") for match in _KERNEL.finditer(text)]
    text = _SHARED.sub(r"\1 __attribute__((aligned(alignof(\g<type>)))) \g<type> ", text)
    text += "".join(_TRAMPOLINE.format(name=kernel, bounds=bounds) for kernel, bounds in kernels)
    return _compile(name, text, [*OPTIONS, *CHECKS], [str(_engine_path())])


def _preprocess(source: Path, defines: Defines, folders: tuple[Path, ...]) -> str:
    """Return the source with what it includes; its names do not clash with those of the host's library."""
    wrapper = _WRAPPER.format(source=source)
    includes = [f"-I{folder}" for folder in (*folders, HERE)]
    options = [f"-D{name}={value}" for name, value in defines]
    command = ["-E", "-x", "c++", "-std=c++17", "-DLLMD_SIMT", *includes, *options, "-"]
    text = _run(command, wrapper, source.name)
    return _FOLDER_OF_LINE.sub(r"\1", text)  # the same text wherever the file is


@cache
def _engine_path() -> Path:
    source = HERE / "engine.cpp"
    text = _run(["-E", "-std=c++17", str(source)], "", source.name)
    return _compile("engine", text, [*OPTIONS, "-O3"], [])


def _compile(name: str, text: str, options: list[str], libraries: list[str]) -> Path:
    """Return the library of a preprocessed text, compiled once for all processes."""
    parts = [_version(), text, *options, *LINKING, *libraries]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]
    path = _folder() / f"{name}-{key}.so"
    if path.exists():
        path.touch()
        return path
    with tempfile.TemporaryDirectory(dir=_folder()) as work:
        made = Path(work) / path.name
        compiled = f"{made}.o"
        _run([*options, "-x", "c++-cpp-output", "-c", "-", "-o", compiled], text, name)
        # Without the options of the checks, which would add a library of the compiler.
        _run([*LINKING, compiled, *libraries, "-o", str(made)], "", name)
        made.replace(path)
    return path


def _run(arguments: list[str], text: str, name: str) -> str:
    program = compiler()
    if program is None:
        raise DeviceError("there is no g++ to compile kernels for the host")
    done = subprocess.run([program, *arguments], input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DeviceError(f"{name} does not compile for the host: {done.stderr}")
    return done.stdout


@cache
def _version() -> str:
    return _run(["-dumpfullversion", "-dumpmachine"], "", "g++")


@cache
def _folder() -> Path:
    folder = Path(tempfile.gettempdir()) / f"llmd-simt-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    oldest = time.time() - UNUSED_S
    for library in folder.glob("*.so"):
        with suppress(FileNotFoundError):  # another process does the same
            if library.stat().st_mtime < oldest:
                library.unlink()
    return folder
