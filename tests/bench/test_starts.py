"""Sides take turns, forget the model before a first start, and finish writing before later starts."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench import checkpoint, starts
from bench.quiet import DisturbedError, QuietRounds
from bench.starts import FILE, PAIRS, first_starts, later_starts, loads, read_pairs, taken
from bench.starts_report import OwnStart, PairStarts
from bench.weight_errors import WeightErrors
from tests.bench.families import LLAMA
from tests.bench.watches import Watch, scripted


class Recorder:
    """A side that records its calls, and those of the server that it starts."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name = name
        self._log = log
        self.prompts: list[list[int]] = []

    @contextmanager
    def launch(self) -> Iterator[Any]:
        self._log.append(f"{self.name} starts")
        yield self
        self._log.append(f"{self.name} ends")

    def forget(self) -> None:
        self._log.append(f"{self.name} forgets")

    def first_token_s(self, prompt: list[int]) -> float:
        self.prompts.append(prompt)
        return float(len(self.prompts))

    def wait_until_idle(self) -> None:
        self._log.append(f"{self.name} rests")

    unloaded = launch_empty = launch

    def listening_s(self) -> float:
        return 0.5

    def ask(self, prompt: list[int]) -> None:
        self.prompts.append(prompt)
        self._log.append(f"{self.name} loads")

    def post(self, path: str, body: dict[str, Any]) -> int:
        self._log.append(f"{self.name} is posted {path} {body}")
        return 200

    def load_s(self) -> float:
        self._log.append(f"{self.name} loads")
        return 3.0


@pytest.fixture
def log() -> list[str]:
    return []


@pytest.fixture
def sides(log: list[str]) -> list[Recorder]:
    return [Recorder("llmd", log), Recorder("llama.cpp", log)]


def test_a_first_start_follows_forgetting_and_each_side_goes_first(
    sides: list[Recorder], log: list[str]
) -> None:
    measure_round = first_starts(sides)
    assert [measure_round(number) for number in (0, 1)] == [
        {"llmd": 1.0, "llama.cpp": 1.0},
        {"llmd": 2.0, "llama.cpp": 2.0},
    ]
    ours, peer = (
        [f"{name} {what}" for what in ("forgets", "starts", "ends")] for name in ("llmd", "llama.cpp")
    )
    assert log == [*ours, *peer, *peer, *ours]
    prompts = [tuple(prompt) for side in sides for prompt in side.prompts]
    assert len(prompts) == len(set(prompts)) == 4


def test_a_later_start_forgets_nothing_and_rests_in_the_round_that_warms_up(
    sides: list[Recorder], log: list[str]
) -> None:
    measure_round = later_starts(sides)
    measure_round(0)
    assert log == [f"{name} {what}" for name in ("llmd", "llama.cpp") for what in ("starts", "rests", "ends")]
    log.clear()
    measure_round(1)
    assert log == [f"{name} {what}" for name in ("llama.cpp", "llmd") for what in ("starts", "ends")]


def test_a_daemon_unloads_the_model_before_the_peer_loads_it(sides: list[Any], log: list[str]) -> None:
    ours, peer = sides
    measure_round = loads(ours, ours, peer)
    unloads = "llmd is posted /llmd/stop {'model': 'model'}"
    assert measure_round(0)["llama.cpp"] == 3.0
    assert log == ["llmd rests", "llmd loads", unloads, "llama.cpp loads"]
    log.clear()
    assert measure_round(1)["llmd"] >= 0
    assert log == ["llama.cpp loads", "llmd rests", "llmd loads", unloads]


def test_every_pair_has_its_starts_and_the_daemon_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made: list[tuple[object, ...]] = []

    def recorder(name: str) -> Callable[..., Recorder]:
        def make(*arguments: object) -> Recorder:
            made.append((name, *arguments))
            return Recorder(name, [])

        return make

    for module in (checkpoint, starts):
        monkeypatch.setattr(module, "MODELS", tmp_path)
    monkeypatch.setattr(starts, "gguf_of", lambda directory, kind: directory.with_suffix(f".{kind}"))
    bits = {"llmd": 4.44, "llama.cpp": 4.63}
    monkeypatch.setattr(starts, "compare_errors", lambda *_: WeightErrors("", {}, bits))
    monkeypatch.setattr(starts, "QuietRounds", lambda: QuietRounds(Watch))
    monkeypatch.setattr(starts, "Llmd", recorder("llmd"))
    monkeypatch.setattr(starts, "LlamaCpp", recorder("llama.cpp"))
    same, other, own = starts.measure(LLAMA, read_pairs("file:Q8_0,q4:Q4_0"), 2, 1)
    model = checkpoint.checkpoint_directory(LLAMA)
    assert (model / "tokenizer.json").exists()
    assert [ours[:3] for ours in made[::2]] == [
        ("llmd", model.with_suffix(".Q8_0"), None),
        ("llmd", model, "q4"),
    ]
    assert [peer[:2] for peer in made[1::2]] == [
        ("llama.cpp", model.with_suffix(f".{kind}")) for kind in ("Q8_0", "Q4_0")
    ]
    assert isinstance(same, PairStarts)
    assert isinstance(other, PairStarts)
    assert (same.bits, other.bits) == (None, bits)
    for pair in (same, other):
        assert [start.title.partition(",")[0] for start in pair.starts] == [
            "first start",
            "later start",
            "load and first token",
        ]
        assert all(len(seconds) == 2 for start in pair.starts for seconds in start.seconds.values())
    assert isinstance(own, OwnStart)
    assert own.seconds == [0.5, 0.5]


def test_a_start_beside_which_others_worked_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starts, "QuietRounds", lambda: QuietRounds(scripted(0.0, 0.5, 0.0)))
    seconds = iter([9.0, 1.0, 7.0, 2.0])
    found = taken("later start", 2, lambda _: dict.fromkeys(("llmd", "llama.cpp"), next(seconds)))
    assert found.seconds == {"llmd": [1.0, 2.0], "llama.cpp": [1.0, 2.0]}
    assert (len(found.tally.counted), len(found.tally.thrown_out)) == (2, 1)


def test_on_a_busy_machine_the_measurement_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starts, "QuietRounds", lambda: QuietRounds(lambda: Watch(0.5)))
    with pytest.raises(DisturbedError, match="later start: other processes had 50 to 50 %"):
        taken("later start", 2, lambda _: {"llmd": 1.0, "llama.cpp": 1.0})


def test_pairs_are_read_as_they_are_written() -> None:
    assert read_pairs("file:Q4_0,q4:Q4_0") == [(FILE, "Q4_0"), ("q4", "Q4_0")]
    assert len(read_pairs(PAIRS)) == 5
    with pytest.raises(argparse.ArgumentTypeError, match="write FORMAT:TYPE"):
        read_pairs("q4")
