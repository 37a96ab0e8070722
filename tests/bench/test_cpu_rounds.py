"""Sides take turns on the same prompts, each goes first, and the round that warms up does not count."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bench.cpu_profiles import QUICK
from bench.cpu_rounds import SHORT, Case, Prompts, decode, measure, prefill

VOCAB = 1000
PROFILE = replace(QUICK, prompt=40, depths=(200,), batches=(1, 3), rounds=2, steps=4)


class Recorder:
    """Answers with the seconds that a table has, and writes down what it was asked."""

    def __init__(self, name: str, log: list[tuple[str, str, Any]], seconds: float = 1.0) -> None:
        self.name = name
        self._log = log
        self._seconds = seconds

    def call(self, method: str, *arguments: object) -> float:
        self._log.append((self.name, method, arguments))
        return self._seconds


def sides() -> tuple[list[Recorder], Recorder, list[tuple[str, str, Any]]]:
    log: list[tuple[str, str, Any]] = []
    return [Recorder("ours", log, 2.0), Recorder("peer", log, 4.0)], Recorder("probe", log, 9.0), log


def test_each_side_goes_first_and_all_have_the_same_new_prompt() -> None:
    both, probe, log = sides()
    found = prefill(both, probe, Prompts(VOCAB), 40, rounds=2)
    opened = [(name, arguments[0]) for name, method, arguments in log if method == "open"]
    assert [name for name, _ in opened] == ["ours", "peer", "peer", "ours", "ours", "peer"]
    prompts = [prompt for _, prompt in opened]
    assert prompts[::2] == prompts[1::2]
    assert all(len(prompt[0]) == 40 for prompt in prompts)
    assert len({tuple(prompt[0]) for prompt in prompts}) == 3
    assert found.rates == {"ours": [20.0, 20.0], "peer": [10.0, 10.0]}
    assert found.reads == [9.0, 9.0]


def test_decoding_goes_on_in_sequences_that_stay_open() -> None:
    both, probe, log = sides()
    (found,) = decode(both, probe, Prompts(VOCAB), Case("decode", 3, SHORT), PROFILE)
    methods = [method for name, method, _ in log if name == "ours"]
    assert methods == ["open", *["decode"] * 3, "close"]
    assert found.rates["ours"] == [3 * 4 / 2.0] * 2
    room = next(arguments[1] for _, method, arguments in log if method == "open")
    assert room == 1 + 3 * 4


def test_memory_is_read_between_the_rounds() -> None:
    both, probe, log = sides()
    decode(both, probe, Prompts(VOCAB), Case("decode", 1, SHORT), PROFILE)
    names = [name for name, method, _ in log if method in {"read", "decode"}]
    assert names == ["probe", "ours", "peer", "probe", "peer", "ours", "probe", "ours", "peer"]


def test_a_depth_also_tells_how_long_it_took_to_get_there() -> None:
    both, probe, _ = sides()
    filling, found = decode(both, probe, Prompts(VOCAB), Case("decode", 1, 200), PROFILE)
    assert (filling.case, filling.rates) == (Case("prefill", 1, 200), {"ours": [100.0], "peer": [50.0]})
    assert found.case == Case("decode", 1, 200)


def test_a_profile_is_measured_whole() -> None:
    both, probe, _ = sides()
    cases = [rounds.case for rounds in measure(both, probe, PROFILE, VOCAB)]
    assert cases == [
        Case("prefill", 1, 40),
        Case("decode", 1, SHORT),
        Case("decode", 3, SHORT),
        Case("prefill", 1, 200),
        Case("decode", 1, 200),
    ]
