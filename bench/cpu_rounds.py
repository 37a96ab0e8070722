"""Rounds in which every side has its turn, and a probe of the memory between them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from bench.cpu_profiles import Profile

SHORT = 64
"""Tokens of a prompt after which decoding counts as without depth."""


class Party(Protocol):
    """A `bench.worker.Side`."""

    name: str

    def call(self, method: str, *arguments: object) -> Any: ...


@dataclass(frozen=True)
class Case:
    """Sequences at once, and how many tokens each has before what is timed."""

    kind: str
    batch: int
    depth: int


@dataclass(frozen=True)
class Rounds:
    """Tokens per second of each side in each round, and bytes per second that memory was read at between them."""

    case: Case
    rates: dict[str, list[float]]
    reads: list[float]


class Prompts:
    """Prompts of random tokens; no two share a beginning, which a prefix cache would know."""

    def __init__(self, vocab: int) -> None:
        self._vocab = vocab
        self._seeds = itertools.count()

    def draw(self, batch: int, length: int) -> list[list[int]]:
        """``batch`` prompts of one length."""
        generator = np.random.default_rng(next(self._seeds))
        tokens: list[list[int]] = generator.integers(0, self._vocab, (batch, length)).tolist()
        return tokens


def measure(sides: Sequence[Party], probe: Party, profile: Profile, vocab: int) -> list[Rounds]:
    """Every case of a profile."""
    prompts = Prompts(vocab)
    found = [prefill(sides, probe, prompts, profile.prompt, profile.rounds)]
    for batch in profile.batches:
        found += decode(sides, probe, prompts, Case("decode", batch, SHORT), profile)
    for depth in profile.depths:
        found += decode(sides, probe, prompts, Case("decode", 1, depth), profile)
    return found


def prefill(sides: Sequence[Party], probe: Party, prompts: Prompts, length: int, rounds: int) -> Rounds:
    """Prompts of a length, each new to both sides; the first round does not count."""
    found = Rounds(Case("prefill", 1, length), {side.name: [] for side in sides}, [])
    for number in range(rounds + 1):
        prompt = prompts.draw(1, length)
        found.reads.append(probe.call("read"))
        for side in in_turn(sides, number):
            found.rates[side.name].append(length / side.call("open", prompt, 1))
            side.call("close")
    return without_first(found)


def decode(
    sides: Sequence[Party], probe: Party, prompts: Prompts, case: Case, profile: Profile
) -> list[Rounds]:
    """Tokens after prompts; the sequences stay open while the sides take turns. With depth, the prefill too."""
    filled = prompts.draw(case.batch, case.depth)
    filling = {
        side.name: [case.batch * case.depth / side.call("open", filled, profile.grown)] for side in sides
    }
    found = Rounds(case, {side.name: [] for side in sides}, [])
    for number in range(profile.rounds + 1):
        found.reads.append(probe.call("read"))
        for side in in_turn(sides, number):
            seconds = side.call("decode", profile.steps)
            found.rates[side.name].append(case.batch * profile.steps / seconds)
    for side in sides:
        side.call("close")
    before = [] if case.depth == SHORT else [Rounds(Case("prefill", 1, case.depth), filling, [])]
    return [*before, without_first(found)]


def in_turn(sides: Sequence[Party], number: int) -> list[Party]:
    """Another side goes first in each round."""
    first = number % len(sides)
    return [*sides[first:], *sides[:first]]


def without_first(found: Rounds) -> Rounds:
    """Without the round that warmed up."""
    return Rounds(found.case, {name: rates[1:] for name, rates in found.rates.items()}, found.reads[1:])
