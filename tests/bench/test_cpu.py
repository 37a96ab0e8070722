"""A full comparison makes a page. A second llmd replaces the peer, so that tests do not need llama.cpp."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bench import checkpoint, cpu, cpu_pair, cpu_quality, weight_errors
from bench.checkpoint import write_checkpoint
from bench.cpu_profiles import QUICK
from bench.cpu_report import page
from bench.cpu_rounds import SHORT, Case
from bench.cpu_sides import Room, open_llmd
from bench.quiet import DisturbedError, QuietRounds
from bench.worker import Side
from tests.bench.families import LLAMA
from tests.bench.watches import Watch, scripted

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

    def stand_in(
        file: Path, build: str, threads: int, _kv_type: str = "F16", waiting: str = "default"
    ) -> Side:
        model = file if file.is_dir() else directory
        room = replace(Room.for_profile(PROFILE, SHAPE), token_bytes=8192)  # enough for the guide, too
        side = open_llmd(model, None, tmp_path / "cache", room, threads)
        side.name = f"llama.cpp {build}" if waiting == "default" else f"llama.cpp {build}, {waiting}"
        return side

    def own_directory(model: Path, _kind: str, _file: Path) -> Path:
        return model

    sizes = {"read_bytes": 100, "expert_bytes": 0, "types": {"Q8_0": 100}, "bits_per_weight": 8.5}
    facts = json.dumps({"nmse": 0.0, **sizes})
    monkeypatch.setattr(cpu_quality, "QUESTIONS", 2)
    monkeypatch.setattr(cpu, "MODELS", tmp_path)
    monkeypatch.setattr(checkpoint, "MODELS", tmp_path)
    monkeypatch.setattr(cpu, "checkpoint_directory", lambda _: directory)
    monkeypatch.setattr(weight_errors, "SAMPLE", SHAPE)
    monkeypatch.setattr(weight_errors, "make_gguf", own_directory)
    for module in (cpu_pair, weight_errors):
        monkeypatch.setattr(module, "run_peer", lambda *_: facts)
    monkeypatch.setattr(cpu_pair, "QuietRounds", partial(QuietRounds, Watch))
    monkeypatch.setattr(cpu_pair, "open_peer", stand_in)


@pytest.mark.exhaustive
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
    assert section.beside is not None
    (_, beside) = section.beside.rounds
    assert beside.case == Case("decode", 1, SHORT)
    assert list(beside.rates) == ["llmd", "llama.cpp native", "llama.cpp native, passive"]
    assert [one.weights for one in section.quality.errors] == list(
        weight_errors.sorts_of_weights(Path("timed"))
    )
    assert "### Quality of q8 and Q8_0" in page(SHAPE, PROFILE, [], "a machine", "1.2.3", [section])


@pytest.mark.exhaustive
@pytest.mark.usefixtures("without_peer")
def test_one_instruction_set_is_compared_with_its_own_build(tmp_path: Path) -> None:
    pair = cpu_pair.Pair(SHAPE, PROFILE, "q8", "Q8_0", tmp_path / "model", tmp_path / "cache")
    found = pair.alone("generic")
    assert list(found.starts) == ["llmd, again", "llama.cpp generic, again"]
    assert [rounds.case for rounds in found.rounds] == [Case("prefill", 1, 70), Case("decode", 2, SHORT)]
    assert (len(found.tally.counted), len(found.tally.thrown_out)) == (3, 0)


@pytest.mark.exhaustive
@pytest.mark.usefixtures("without_peer")
def test_a_first_start_in_which_others_worked_is_repeated_with_empty_caches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed: list[bool] = []

    def watched(*arguments: Any) -> Side:
        packed.append(bool(list(tmp_path.glob("own-cache/packed/*/*.packed"))))
        return open_llmd(*arguments)

    monkeypatch.setattr(cpu_pair, "open_llmd", watched)
    monkeypatch.setattr(cpu_pair, "QuietRounds", partial(QuietRounds, scripted(0.5, *[0.0] * 5)))
    pair = cpu_pair.Pair(SHAPE, PROFILE, "q8", "Q8_0", tmp_path / "model", tmp_path / "own-cache")
    found, _ = pair.best()
    assert packed[:4] == [False, False, True, True]  # first, first repeated, the rounds, again
    assert (len(found.tally.counted), len(found.tally.thrown_out)) == (4, 1)


@pytest.mark.exhaustive
@pytest.mark.usefixtures("without_peer")
def test_on_a_busy_machine_the_measurement_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_pair, "QuietRounds", partial(QuietRounds, partial(Watch, 0.5)))
    pair = cpu_pair.Pair(SHAPE, PROFILE, "q8", "Q8_0", tmp_path / "model", tmp_path / "cache")
    with pytest.raises(DisturbedError, match="prefill 70: other processes had 50 to 50 %"):
        pair.alone("generic")
