"""Builds differ in their instruction sets alone, and AMX is compiled so that it works."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

from bench.llama_cpp_build import BUILDS, WITHOUT_AMX

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


@pytest.mark.skipif(platform.machine() != "x86_64", reason="AMX is an extension of x86-64")
def test_a_tile_configuration_reaches_the_processor_whole() -> None:
    command = ["c++", "-O3", "-mamx-tile", "-include", str(HEADER), "-S", "-x", "c++", "-o", "-", "-"]
    assembly = subprocess.run(command, input=CONFIGURE, text=True, check=True, capture_output=True).stdout
    assert "ldtilecfg" in assembly
    assert "201" in assembly or "-55" in assembly
