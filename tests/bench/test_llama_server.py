"""The peer is built at the pinned version, without its AMX kernels where there are any."""

from __future__ import annotations

import pytest

from bench.llama_server import ROOT, pinned_version, run
from bench.llama_server import defined as defined_on


def test_the_version_is_the_one_that_the_other_benchmark_uses() -> None:
    assert pinned_version("numpy\nllama-cpp-python==1.2.3\n") == "1.2.3"
    assert pinned_version((ROOT / "bench" / "requirements.txt").read_text())[0].isdigit()


def test_amx_is_left_out_on_x86_alone() -> None:
    assert any("-mno-amx-int8" in word for word in defined_on("x86_64"))
    assert not any("amx" in word for word in defined_on("aarch64"))
    assert "-DLLAMA_BUILD_UI=OFF" in defined_on("aarch64")


def test_a_build_that_fails_ends_with_what_it_said() -> None:
    run(["true"])
    with pytest.raises(SystemExit, match="no such thing"):
        run(["sh", "-c", "echo no such thing; exit 3"])
