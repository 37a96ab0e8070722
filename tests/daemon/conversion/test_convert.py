"""A conversion is complete or leaves nothing behind."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from llmd.api import Architecture
from llmd.api.errors import (
    CheckpointError,
    ConflictError,
    DiskSpaceError,
    NotFoundError,
    TokenizerError,
    UnsupportedModelError,
)
from llmd.builtin.guide import guide_directory
from llmd.chat.tokenizers.tokenizer_loader import load_tokenizer
from llmd.conversion.convert import convert
from tests.golden.checkpoint import write_checkpoint
from tests.golden.converted import converted, different, stored_tensors
from tests.golden.models.llama import llama
from tests.golden.models.tiny import TinyModel
from tests.serving.model import write_embedding_model

METASPACE = Path(__file__).parents[2] / "golden/tokenizers/metaspace_json"

Architectures = Mapping[str, Architecture]


def test_the_guide_comes_back_to_the_last_bit_with_its_text_side(
    tmp_path: Path, architectures: Architectures
) -> None:
    guide, back = guide_directory(), tmp_path / "back"
    report = converted(guide, tmp_path / "guide.gguf", architectures)
    assert report.formats == {"bf16": 50, "f32": 15}
    assert report.size_bytes == (tmp_path / "guide.gguf").stat().st_size
    converted(tmp_path / "guide.gguf", back, architectures)
    assert different(stored_tensors(guide), stored_tensors(back)) == []
    first, second = load_tokenizer(guide), load_tokenizer(back)
    text = "How do I see my devices, 12 of them?<|end|>"
    assert second.encode(text) == first.encode(text)
    assert second.vocabulary.specials == first.vocabulary.specials
    templates = [
        json.loads((d / "tokenizer_config.json").read_text())["chat_template"] for d in (guide, back)
    ]
    assert templates[0] == templates[1]


def test_progress_goes_up_to_the_end(tmp_path: Path, model: Path, architectures: Architectures) -> None:
    steps = list(convert(model, tmp_path / "m.gguf", architectures))
    assert {step.total for step in steps} == {steps[0].total}
    completed = [step.completed for step in steps]
    assert completed == sorted(completed)
    assert completed[-1] == steps[-1].total > completed[0]


def test_nothing_is_seen_before_the_end_and_nothing_is_left_by_one_that_ends_early(
    tmp_path: Path, model: Path, architectures: Architectures
) -> None:
    for target in (tmp_path / "out" / "m.gguf", tmp_path / "out" / "directory"):
        running = convert(model, target, architectures)
        for _ in zip(range(5), running, strict=False):
            assert not target.exists()
        running.close()
        assert list(target.parent.iterdir()) == []


def test_what_is_there_is_replaced_only_where_that_is_asked_for(
    tmp_path: Path, model: Path, architectures: Architectures
) -> None:
    for target in (tmp_path / "m.gguf", tmp_path / "copy"):
        converted(model, target, architectures)
        with pytest.raises(ConflictError):
            converted(model, target, architectures, quant="f16")
        assert {dtype for dtype, _ in stored_tensors(target).values()} == {"F32"}
        converted(model, target, architectures, quant="f16", force=True)
        assert "F16" in {dtype for dtype, _ in stored_tensors(target).values()}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "m.gguf", "model"]


def test_a_disk_that_is_too_small_is_told_before_anything_is_written(
    tmp_path: Path, model: Path, architectures: Architectures
) -> None:
    with pytest.raises(DiskSpaceError, match="are missing"):
        converted(model, tmp_path / "out" / "m.gguf", architectures, free=lambda _: 1000)
    assert list((tmp_path / "out").iterdir()) == []


def test_what_was_read_of_the_source_gives_its_memory_back(
    tmp_path: Path, model: Path, architectures: Architectures
) -> None:
    for _ in convert(model, tmp_path / "m.gguf", architectures):
        assert resident_bytes(model / "model.safetensors") == 0


def resident_bytes(path: Path) -> int:
    """Return how much of a mapped file is in the memory of this process."""
    entries = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", Path("/proc/self/smaps").read_text(), flags=re.MULTILINE)
    of_file = [entry for entry in entries if entry.partition("\n")[0].endswith(str(path))]
    assert of_file
    return sum(int(re.findall(r"^Rss: +(\d+) kB", entry, re.MULTILINE)[0]) for entry in of_file) * 1024


def test_a_tokenizer_that_would_cut_otherwise_is_refused_by_an_example(
    tmp_path: Path, architectures: Architectures
) -> None:
    tokenizer = load_tokenizer(METASPACE)
    case = TinyModel("metaspace", llama(vocab_size=tokenizer.vocab_size))
    source = write_checkpoint(case, tmp_path / "source")
    for file in METASPACE.glob("*.json"):
        (source / file.name).write_bytes(file.read_bytes())
    with pytest.raises(TokenizerError, match=r"would split text differently in a GGUF file: .  def f"):
        converted(source, tmp_path / "m.gguf", architectures)
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_a_cut_that_has_no_name_in_gguf_files_is_refused(
    tmp_path: Path, model: Path, architectures: Architectures
) -> None:
    stated = json.loads((model / "tokenizer.json").read_text())
    stated["normalizer"] = {"type": "Lowercase"}
    (model / "tokenizer.json").write_text(json.dumps(stated))
    with pytest.raises(TokenizerError, match="has no name in GGUF files"):
        converted(model, tmp_path / "m.gguf", architectures)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]
    converted(model, tmp_path / "copy", architectures)
    assert load_tokenizer(tmp_path / "copy").encode("A") == load_tokenizer(model).encode("a")


def test_a_damaged_or_missing_model_is_refused_by_its_file(
    tmp_path: Path, model: Path, architectures: Architectures
) -> None:
    with pytest.raises(NotFoundError, match="neither a directory nor a GGUF file"):
        converted(tmp_path / "absent.gguf", tmp_path / "m", architectures)
    with pytest.raises(UnsupportedModelError, match="embed or rank"):
        converted(write_embedding_model(tmp_path / "e"), tmp_path / "m", architectures)
    content = (model / "model.safetensors").read_bytes()
    (model / "model.safetensors").write_bytes(content[:-8])
    with pytest.raises(CheckpointError, match=r"model.safetensors: .*truncated"):
        converted(model, tmp_path / "m.gguf", architectures)


def test_a_value_that_the_format_cannot_hold_leaves_nothing(
    tmp_path: Path, model: Path, architectures: Architectures
) -> None:
    path = model / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-4:] = np.float32(1e38).tobytes()
    path.write_bytes(content)
    for target, quant in (
        (tmp_path / "m.gguf", "f16"),
        (tmp_path / "q.gguf", "q4_0"),
        (tmp_path / "d", "f16"),
    ):
        with pytest.raises(CheckpointError, match=f"cannot be written as {quant}|as q8_0"):
            converted(model, target, architectures, quant=quant)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]
