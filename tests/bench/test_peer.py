"""The peer's environment gets its arguments, and its error messages reach the user."""

from __future__ import annotations

import os
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


def test_a_model_is_made_again_only_where_its_weights_are_newer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    monkeypatch.setattr(peer, "run_peer", lambda *arguments: made.append(arguments[-1]))
    weights, file = tmp_path / "model.safetensors", tmp_path / "model.gguf"
    weights.touch()
    os.utime(weights, (1000, 1000))
    assert peer.make_gguf(tmp_path, "Q8_0", file) == file
    assert made == ["Q8_0"]
    file.touch()
    peer.make_gguf(tmp_path, "Q8_0", file)
    assert made == ["Q8_0"]
    weights.touch()
    os.utime(file, (1000, 1000))
    peer.make_gguf(tmp_path, "Q8_0", file)
    assert made == ["Q8_0", "Q8_0"]


def test_each_build_has_its_own_library() -> None:
    assert peer.peer_environment("avx2")["LLAMA_CPP_LIB_PATH"].endswith("avx2")


def test_threads_wait_as_they_are_told() -> None:
    assert peer.waiting_environment("default") == {}
    assert peer.waiting_environment("passive") == {"OMP_WAIT_POLICY": "passive"}
