"""What the peer's environment is asked reaches it, and what it says of a failure reaches the person."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench import peer


@pytest.fixture(autouse=True)
def own_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "PEER_PYTHON", Path(sys.executable))


def test_a_module_answers_with_what_it_prints() -> None:
    assert "usage" in peer.run_peer("json.tool", "--help")


def test_a_failure_is_told_with_its_reason() -> None:
    with pytest.raises(RuntimeError, match=r"no\.such\.module ended with 1: .*No module named"):
        peer.run_peer("no.such.module")


def test_a_model_that_is_there_is_not_made_again(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.touch()
    assert peer.make_gguf(tmp_path / "absent", "Q8_0", file) == file


def test_each_build_has_its_own_library() -> None:
    assert peer.peer_environment("avx2")["LLAMA_CPP_LIB_PATH"].endswith("avx2")
