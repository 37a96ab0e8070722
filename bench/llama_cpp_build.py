"""Builds llama.cpp from the source package of llama-cpp-python: ``python -m bench.llama_cpp_build FOLDER``.

A folder of libraries for each instruction set, of which only that of kernels differs; ``native`` also has ``llama-server``, since
the package's own Python server serves one request at a time. Needs pip, cmake, ninja and a C++ compiler, and takes some ten
minutes.
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
    # The header keeps their AMX kernels from ending with SIGSEGV where GCC before 13 has compiled them.
    "native": {"CMAKE_CXX_FLAGS": f"-include {Path(__file__).with_name('amx_tile_config.h')}"},
    "no-amx": {"CMAKE_C_FLAGS": WITHOUT_AMX, "CMAKE_CXX_FLAGS": WITHOUT_AMX},
    "avx2": dict.fromkeys(("GGML_AVX2", "GGML_FMA", "GGML_F16C", "GGML_BMI2"), "ON") | {"GGML_NATIVE": "OFF"},
}
"""Each repacks weights for its kernels as it loads. The second has those of AVX-512 alone, which some types and batches
are faster with."""


def main() -> None:
    """Leave a folder for each build, and the pinned ``version``."""
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
    """Copy a build, with the library of kernels of another."""
    shutil.copytree(native, folder, symlinks=True)
    for library in made.glob(f"lib{KERNELS}*"):
        if not library.is_symlink():
            shutil.copy(library, folder)


if __name__ == "__main__":
    main()
