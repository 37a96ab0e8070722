"""The peer is built from the pinned version, and a failed build is reported."""

from __future__ import annotations

import pytest

from bench.llama_cpp_source import ROOT, pinned_version, run


def test_the_version_is_pinned_once() -> None:
    assert pinned_version("numpy\nllama-cpp-python==1.2.3\n") == "1.2.3"
    assert pinned_version((ROOT / "bench" / "requirements.txt").read_text())[0].isdigit()


def test_a_build_that_fails_ends_with_what_it_said() -> None:
    run(["true"])
    with pytest.raises(SystemExit, match="no such thing"):
        run(["sh", "-c", "echo no such thing; exit 3"])
