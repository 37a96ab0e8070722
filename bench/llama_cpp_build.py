"""Builds llama.cpp from the source package of llama-cpp-python: ``python -m bench.llama_cpp_build FOLDER``.

Creates a folder of libraries for each instruction set, which differ only in the kernel library. ``native``
also has ``llama-server``, because the package's Python server serves one request at a time. Needs pip, cmake,
ninja and a C++ compiler, and takes about ten minutes.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from bench.llama_cpp_source import ROOT, build, fetch, pinned_version

OPTIONS = {
    "CMAKE_BUILD_TYPE": "Release",
    "BUILD_SHARED_LIBS": "ON",
    "CMAKE_BUILD_WITH_INSTALL_RPATH": "ON",
    "CMAKE_INSTALL_RPATH": "$ORIGIN",
    "LLAMA_BUILD_UI": "OFF",
    "LLAMA_USE_PREBUILT_UI": "OFF",
    "LLAMA_OPENSSL": "OFF",
    "LLAMA_BUILD_TESTS": "OFF",
    "LLAMA_BUILD_EXAMPLES": "OFF",
    "LLAMA_BUILD_APP": "OFF",
}
KERNELS = "ggml-cpu"
WITHOUT_AMX = "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"
BUILDS = {
    # The header prevents a SIGSEGV in their AMX kernels when compiled with GCC before 13.
    "native": {"CMAKE_CXX_FLAGS": f"-include {Path(__file__).with_name('amx_tile_config.h')}"},
    "no-amx": {"CMAKE_C_FLAGS": WITHOUT_AMX, "CMAKE_CXX_FLAGS": WITHOUT_AMX},
    "avx2": dict.fromkeys(("GGML_AVX2", "GGML_FMA", "GGML_F16C", "GGML_BMI2"), "ON") | {"GGML_NATIVE": "OFF"},
}
"""Each repacks weights for its kernels while loading. The second uses only AVX-512, which is faster for some
types and batches.
"""


def main() -> None:
    """Create a folder for each build, and the file ``version`` with the pinned version."""
    folder = Path(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    version = pinned_version((ROOT / "bench" / "requirements.txt").read_text())
    sources = fetch(version, folder)
    for name, options in BUILDS.items():
        targets = ["llama", "llama-server"] if name == "native" else [KERNELS]
        made = build(sources, folder / "build", targets, OPTIONS | options)
        if name == "native":
            shutil.copytree(made, folder / name, symlinks=True)
        else:
            with_kernels(folder / "native", made, folder / name)
        shutil.rmtree(folder / "build")
    (folder / "version").write_text(version)
    shutil.rmtree(sources.parents[1])


def with_kernels(native: Path, made: Path, folder: Path) -> None:
    """Copy a build with the kernel library of another."""
    shutil.copytree(native, folder, symlinks=True)
    for library in made.glob(f"lib{KERNELS}*"):
        if not library.is_symlink():
            shutil.copy(library, folder)


if __name__ == "__main__":
    main()
