"""Rounds in which the sides take turns, each after a probe of the memory bandwidth."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from bench.cpu_profiles import Profile
from bench.quiet import QuietRounds

SHORT = 64
"""Prompt length of decode cases without depth."""
T = TypeVar("T")


class Named(Protocol):
    """A side of a comparison."""

    name: str


class Party(Named, Protocol):
    """A `bench.worker.Side`."""

    def call(self, method: str, *arguments: object) -> Any: ...


@dataclass(frozen=True)
class Case:
    """A number of concurrent sequences, and how many tokens each has before the timed part."""

    kind: str
    batch: int
    depth: int


@dataclass(frozen=True)
class Round:
    """Tokens per second of each side, and bytes per second of the memory probe before, if there was one."""

    rates: dict[str, float]
    read: float | None


@dataclass(frozen=True)
class Rounds:
    """Tokens per second of each side in each counted round, and bytes per second of the memory probes."""

    case: Case
    rates: dict[str, list[float]]
    reads: list[float]

    @classmethod
    def of(cls, case: Case, sides: Sequence[Named], rounds: Sequence[Round]) -> Self:
        """Return the rounds of a case, in the order of the sides, not of their turns."""
        rates = {side.name: [one.rates[side.name] for one in rounds] for side in sides}
        return cls(case, rates, [one.read for one in rounds if one.read is not None])


class Prompts:
    """Prompts of random tokens; no two share a prefix, so prefix caches have no effect."""

    def __init__(self, vocab: int) -> None:
        self._vocab = vocab
        self._seeds = itertools.count()

    def draw(self, batch: int, length: int) -> list[list[int]]:
        """Draw ``batch`` prompts of the same length."""
        generator = np.random.default_rng(next(self._seeds))
        tokens: list[list[int]] = generator.integers(0, self._vocab, (batch, length)).tolist()
        return tokens


class Cases:
    """Measures the cases of a profile on loaded sides, and the memory bandwidth if there is a probe.

    Only quiet rounds count.
    """

    def __init__(
        self, sides: Sequence[Party], probe: Party | None, profile: Profile, vocab: int, quiet: QuietRounds
    ) -> None:
        self._sides, self._probe, self._profile = sides, probe, profile
        self._prompts = Prompts(vocab)
        self._quiet = quiet

    def all(self) -> list[Rounds]:
        """Measure every case of the profile."""
        found = [self.prefill()]
        for batch in self._profile.batches:
            found += self.decode(Case("decode", batch, SHORT))
        for depth in self._profile.depths:
            found += self.decode(Case("decode", 1, depth))
        return found

    def prefill(self) -> Rounds:
        """Measure prompts of the profile's length, each new to all sides."""
        length = self._profile.prompt

        def measure(number: int) -> Round:
            prompt = self._prompts.draw(1, length)
            read, rates = self._read(), {}
            for side in in_turn(self._sides, number):
                rates[side.name] = length / side.call("open", prompt, 1)
                side.call("close")
            return Round(rates, read)

        return self._taken(Case("prefill", 1, length), measure)

    def decode(self, case: Case) -> list[Rounds]:
        """Measure decoding, with open sequences while the sides take turns; with depth, also the prefill."""
        filled = self._filled(case)

        def measure(number: int) -> Round:
            read, rates = self._read(), {}
            for side in in_turn(self._sides, number):
                seconds = side.call("decode", self._profile.steps)
                rates[side.name] = case.batch * self._profile.steps / seconds
            return Round(rates, read)

        found = self._taken(case, measure)
        for side in self._sides:
            side.call("close")
        return [*filled, found]

    def _filled(self, case: Case) -> list[Rounds]:
        """Open the sequences of a case. With depth this takes long enough to be measured, once."""

        def fill(_: int) -> Round:
            prompts, rates = self._prompts.draw(case.batch, case.depth), {}
            for side in self._sides:
                side.call("close")  # sequences left open by a repeated round
                seconds = side.call("open", prompts, self._profile.grown)
                rates[side.name] = case.batch * case.depth / seconds
            return Round(rates, None)

        if case.depth == SHORT:
            fill(0)
            return []
        timed = Case("prefill", case.batch, case.depth)
        return [Rounds.of(timed, self._sides, self._quiet.take(title(timed), fill, 1, warm_up=False))]

    def _read(self) -> float | None:
        return None if self._probe is None else self._probe.call("read")

    def _taken(self, case: Case, measure: Callable[[int], Round]) -> Rounds:
        found = self._quiet.take(title(case), measure, self._profile.rounds)
        return Rounds.of(case, self._sides, found)


def title(case: Case) -> str:
    """Return the title of a case."""
    if case.kind == "prefill":
        return f"prefill {case.depth}"
    if case.depth == SHORT:
        return f"decode, {case.batch} at once"
    return f"decode after {case.depth}"


def in_turn(sides: Sequence[T], number: int) -> list[T]:
    """Rotate the sides, so that another one goes first in each round."""
    first = number % len(sides)
    return [*sides[first:], *sides[:first]]
