"""A whole comparison makes a page. A second llmd stands in for the peer, which tests do not need."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench import cpu, cpu_pair, cpu_quality
from bench.checkpoint import write_checkpoint
from bench.cpu_profiles import QUICK
from bench.cpu_report import page
from bench.cpu_rounds import SHORT, Case
from bench.cpu_sides import Room, open_llmd
from bench.worker import Side
from tests.bench.families import LLAMA

SHAPE = LLAMA
PROFILE = replace(
    QUICK,
    pairs=(("q8", "Q8_0"),),
    isas=("generic",),
    prompt=70,
    depths=(),
    batches=(2,),
    rounds=1,
    threads=1,
)


@pytest.fixture
def without_peer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    directory = write_checkpoint(SHAPE, tmp_path / "model")

    def stand_in(file: Path, build: str, threads: int, _kv_type: str = "F16") -> Side:
        model = file if file.is_dir() else directory
        room = replace(Room.for_profile(PROFILE, SHAPE), token_bytes=8192)  # also for the guide's
        side = open_llmd(model, None, tmp_path / "cache", room, threads)
        side.name = f"llama.cpp {build}"
        return side

    def own_directory(model: Path, _kind: str, _file: Path) -> Path:
        return model

    facts = json.dumps({"nmse": 0.0, "read_bytes": 100, "types": {"Q8_0": 100}})
    monkeypatch.setattr(cpu_quality, "QUESTIONS", 2)
    monkeypatch.setattr(cpu, "MODELS", tmp_path)
    monkeypatch.setattr(cpu_pair, "MODELS", tmp_path)
    monkeypatch.setattr(cpu, "checkpoint_directory", lambda _: directory)
    monkeypatch.setattr(cpu_pair, "make_gguf", own_directory)
    monkeypatch.setattr(cpu_pair, "run_peer", lambda *_: facts)
    monkeypatch.setattr(cpu_pair, "open_peer", stand_in)


@pytest.mark.timeout(120)
@pytest.mark.usefixtures("without_peer")
def test_a_pair_makes_a_page_and_only_what_is_quantised_diverges() -> None:
    (section,) = cpu.sections(SHAPE, replace(PROFILE, isas=()))
    (best,) = section.comparisons
    assert list(best.rounds[0].rates) == ["llmd", "llama.cpp native"]
    names = {f"{name}, {time}" for name in ("llmd", "llama.cpp native") for time in ("first", "again")}
    assert set(best.starts) == names
    for found in (section.quality.peaked, section.quality.guide):
        assert found["llmd q8"].kl > 1e-7
        assert found["llama.cpp Q8_0"].kl == 0
    assert "### Quality of q8 and Q8_0" in page(SHAPE, PROFILE, [], "a machine", "1.2.3", [section])


@pytest.mark.usefixtures("without_peer")
def test_one_instruction_set_is_compared_with_its_own_build(tmp_path: Path) -> None:
    pair = cpu_pair.Pair(SHAPE, PROFILE, "q8", "Q8_0", tmp_path / "model", tmp_path / "cache")
    found = pair.alone("generic")
    assert list(found.starts) == ["llmd, again", "llama.cpp generic, again"]
    assert [rounds.case for rounds in found.rounds] == [Case("prefill", 1, 70), Case("decode", 2, SHORT)]
    assert 0 <= found.others <= 1
