"""Sides take turns on the same prompts, each goes first in turn, and the warm-up does not count."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bench.cpu_profiles import QUICK
from bench.cpu_rounds import SHORT, Case, Cases, Party
from bench.quiet import MOST_THROWN_OUT, QuietRounds
from tests.bench.watches import Watch, scripted

VOCAB = 1000
PROFILE = replace(QUICK, prompt=40, depths=(200,), batches=(1, 3), rounds=2, steps=4)


class Recorder:
    """A side that answers with the seconds in a table and records its calls."""

    def __init__(self, name: str, log: list[tuple[str, str, Any]], seconds: float = 1.0) -> None:
        self.name = name
        self._log = log
        self._seconds = seconds

    def call(self, method: str, *arguments: object) -> float:
        self._log.append((self.name, method, arguments))
        return self._seconds


class Bench:
    """Two sides and a probe that record their calls in one log."""

    def __init__(self, quiet: QuietRounds | None = None) -> None:
        self.log: list[tuple[str, str, Any]] = []
        self.sides: list[Party] = [Recorder("ours", self.log, 2.0), Recorder("peer", self.log, 4.0)]
        self.quiet = quiet or QuietRounds(Watch)
        self.cases = Cases(self.sides, Recorder("probe", self.log, 9.0), PROFILE, VOCAB, self.quiet)

    def asked(self, name: str) -> list[str]:
        return [method for who, method, _ in self.log if who == name]

    def opened(self) -> list[tuple[str, list[list[int]]]]:
        return [(name, arguments[0]) for name, method, arguments in self.log if method == "open"]


def test_each_side_goes_first_and_all_have_the_same_new_prompt() -> None:
    bench = Bench()
    found = bench.cases.prefill()
    assert [name for name, _ in bench.opened()] == ["ours", "peer", "peer", "ours", "ours", "peer"]
    prompts = [prompt for _, prompt in bench.opened()]
    assert prompts[::2] == prompts[1::2]
    assert all(len(prompt[0]) == 40 for prompt in prompts)
    assert len({tuple(prompt[0]) for prompt in prompts}) == 3
    assert found.rates == {"ours": [20.0, 20.0], "peer": [10.0, 10.0]}
    assert list(found.rates) == ["ours", "peer"]
    assert found.reads == [9.0, 9.0]


def test_decoding_goes_on_in_sequences_that_stay_open() -> None:
    bench = Bench()
    (found,) = bench.cases.decode(Case("decode", 3, SHORT))
    assert bench.asked("ours") == ["close", "open", *["decode"] * 3, "close"]
    assert found.rates["ours"] == [3 * 4 / 2.0] * 2


def test_there_is_room_for_the_rounds_that_may_be_repeated() -> None:
    bench = Bench(QuietRounds(scripted(0.0, *[1.0] * MOST_THROWN_OUT, 0.0)))
    bench.cases.decode(Case("decode", 1, SHORT))
    room = next(arguments[1] for _, method, arguments in bench.log if method == "open")
    assert room == 1 + 4 * bench.asked("ours").count("decode")


def test_a_round_in_which_others_worked_has_no_figures_and_a_new_prompt() -> None:
    bench = Bench(QuietRounds(scripted(0.0, 1.0, 0.0)))
    found = bench.cases.prefill()
    assert [len(rates) for rates in (*found.rates.values(), found.reads)] == [2, 2, 2]
    assert len(bench.quiet.tally.thrown_out) == 1
    prompts = {tuple(prompt[0]) for _, prompt in bench.opened()}
    assert len(prompts) == len(bench.opened()) / 2 == 4


def test_memory_is_read_before_each_round() -> None:
    bench = Bench()
    bench.cases.decode(Case("decode", 1, SHORT))
    names = [name for name, method, _ in bench.log if method in {"read", "decode"}]
    assert names == ["probe", "ours", "peer", "probe", "peer", "ours", "probe", "ours", "peer"]


def test_a_depth_also_tells_how_long_it_took_to_get_there() -> None:
    filling, found = Bench().cases.decode(Case("decode", 1, 200))
    assert (filling.case, filling.rates) == (Case("prefill", 1, 200), {"ours": [100.0], "peer": [50.0]})
    assert found.case == Case("decode", 1, 200)


def test_a_depth_is_filled_again_where_others_worked() -> None:
    bench = Bench(QuietRounds(scripted(1.0, 0.0, 0.0, 0.0)))
    filling, _ = bench.cases.decode(Case("decode", 1, 200))
    assert filling.rates == {"ours": [100.0], "peer": [50.0]}
    assert bench.asked("ours")[:4] == ["close", "open", "close", "open"]
    prompts = {tuple(prompt[0]) for _, prompt in bench.opened()}
    assert len(prompts) == 2


def test_a_profile_is_measured_whole() -> None:
    cases = [rounds.case for rounds in Bench().cases.all()]
    assert cases == [
        Case("prefill", 1, 40),
        Case("decode", 1, SHORT),
        Case("decode", 3, SHORT),
        Case("prefill", 1, 200),
        Case("decode", 1, 200),
    ]


def test_nothing_reads_memory_without_a_probe() -> None:
    bench = Bench()
    found = Cases(bench.sides, None, PROFILE, VOCAB, bench.quiet).all()
    assert all(rounds.reads == [] for rounds in found)
