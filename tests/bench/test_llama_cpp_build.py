"""Builds differ only in their instruction sets, and AMX is compiled so that it works."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

from bench.llama_cpp_build import BUILDS, WITHOUT_AMX, with_kernels

HEADER = Path(__file__).parents[2] / "bench" / "amx_tile_config.h"
CONFIGURE = """
#include <immintrin.h>
struct alignas(64) Config {
    unsigned char palette = 0, rest[47] = {}, rows[16] = {};
};
void configure() {
    Config config;
    config.palette = 1;
    config.rows[5] = 201;
    _tile_loadconfig(&config);
}
"""


def test_each_build_has_its_instruction_sets() -> None:
    assert str(HEADER) in BUILDS["native"]["CMAKE_CXX_FLAGS"]
    assert BUILDS["no-amx"] == {"CMAKE_C_FLAGS": WITHOUT_AMX, "CMAKE_CXX_FLAGS": WITHOUT_AMX}
    assert BUILDS["avx2"]["GGML_NATIVE"] == "OFF"
    assert not any("512" in option for option in BUILDS["avx2"])


def test_builds_share_all_but_their_kernels(tmp_path: Path) -> None:
    for name in ("native", "made"):
        (tmp_path / name).mkdir()
        for library in ("ggml-base", "ggml-cpu", "llama"):
            (tmp_path / name / f"lib{library}.so.1").write_text(f"{library} {name}")
            (tmp_path / name / f"lib{library}.so").symlink_to(f"lib{library}.so.1")
    with_kernels(tmp_path / "native", tmp_path / "made", tmp_path / "avx2")
    found = {path.name: path.read_text() for path in (tmp_path / "avx2").iterdir() if path.is_symlink()}
    assert found == {
        "libggml-base.so": "ggml-base native",
        "libggml-cpu.so": "ggml-cpu made",
        "libllama.so": "llama native",
    }


@pytest.mark.skipif(platform.machine() != "x86_64", reason="AMX is an extension of x86-64")
def test_a_tile_configuration_reaches_the_processor_whole() -> None:
    command = ["c++", "-O3", "-mamx-tile", "-include", str(HEADER), "-S", "-x", "c++", "-o", "-", "-"]
    assembly = subprocess.run(command, input=CONFIGURE, text=True, check=True, capture_output=True).stdout
    assert "ldtilecfg" in assembly
    assert "201" in assembly or "-55" in assembly
