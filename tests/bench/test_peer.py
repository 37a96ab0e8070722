"""The peer's environment gets its arguments, and its error messages reach the user."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path

import gguf
import pytest

from bench import peer
from bench.checkpoint import write_checkpoint
from bench.shapes import Shape
from bench.vocabulary import tokens
from llmd.builtin.guide import guide_directory
from tests.bench.families import FAMILIES

PRE_TOKENIZERS_WITH_DIGITS_APART = {"starcoder", "refact", "smollm", "codeshell", "exaone", "minerva-7b"}
"""Names that llama.cpp gives to this pre-tokenizer."""


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

    def write_plain(_directory: Path, file: Path) -> Path:
        file.touch()
        return file

    monkeypatch.setattr(peer, "write_plain", write_plain)
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
    assert not list(tmp_path.glob("*.bf16.gguf"))


@pytest.mark.parametrize("shape", FAMILIES, ids=lambda shape: shape.family)
def test_the_file_has_the_weights_and_the_tokens(shape: Shape, tmp_path: Path) -> None:
    directory = write_checkpoint(shape, tmp_path / "model")
    reader = gguf.GGUFReader(peer.write_plain(directory, tmp_path / "model.gguf"))
    stored = sum(math.prod(dims) for dims in shape.tensors().values())
    assert sum(int(tensor.n_elements) for tensor in reader.tensors) == stored
    listed = reader.get_field("tokenizer.ggml.tokens")
    assert listed is not None
    assert listed.contents() == tokens(shape.vocab)


def test_the_peer_knows_the_pre_tokenizer_of_the_built_in_model(tmp_path: Path) -> None:
    reader = gguf.GGUFReader(peer.write_plain(guide_directory(), tmp_path / "guide.gguf"))
    name = reader.get_field("tokenizer.ggml.pre")
    assert name is not None
    assert name.contents() in PRE_TOKENIZERS_WITH_DIGITS_APART


def test_each_build_has_its_own_library() -> None:
    assert peer.peer_environment("avx2")["LLAMA_CPP_LIB_PATH"].endswith("avx2")


def test_threads_wait_as_they_are_told() -> None:
    assert peer.waiting_environment("default") == {}
    assert peer.waiting_environment("passive") == {"OMP_WAIT_POLICY": "passive"}
