"""Repeats rounds that other processes disturbed.

A peer with spinning threads loses far more time to another process than that process uses, so such a round
says nothing about either side.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from bench.machine import Occupation, adopt_orphans

SHARE_OF_OTHERS = 0.05
"""Share of the CPU time that other processes may use in a counted round."""
TICKS_OF_OTHERS = 4
"""Clock ticks that others may always use: both terms of the difference have a resolution of ticks."""
MOST_THROWN_OUT = 10
"""Rounds of one measure that may be repeated before the measurement is aborted."""
T = TypeVar("T")


class Watch(Protocol):
    """The interface of `bench.machine.Occupation`: available CPU seconds, and the share that others used."""

    def available_s(self) -> float: ...

    def of_others(self) -> float: ...


class DisturbedError(RuntimeError):
    """Other processes disturbed too many rounds."""


@dataclass
class Tally:
    """The share of the CPU time that others used in each counted round and in each discarded round."""

    counted: list[float] = field(default_factory=list)
    thrown_out: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        taken = len(self.counted) + len(self.thrown_out)
        others = 100 * sum(self.counted) / max(1, len(self.counted))
        return (
            f"{len(self.thrown_out)} of {taken} rounds were thrown out because other processes took processor time"
            f" (those that count: {others:.1f} % on average)."
        )


class QuietRounds:
    """Runs rounds until enough of them were quiet, and counts the others."""

    def __init__(self, watch: Callable[[], Watch] = Occupation) -> None:
        adopt_orphans()
        self.tally = Tally()
        self._watch = watch

    def take(self, title: str, measure: Callable[[int], T], wanted: int, *, warm_up: bool = True) -> list[T]:
        """Return the result of ``measure`` for each quiet round, after a warm-up round that never counts.

        ``measure`` gets the number of the round, 0 for the warm-up; a repeated round keeps its number.

        Raises:
            DisturbedError: more than `MOST_THROWN_OUT` rounds were discarded.
        """
        if warm_up:
            measure(0)
        found: list[T] = []
        thrown_out: list[float] = []
        while len(found) < wanted:
            watch = self._watch()
            result = measure(len(found) + 1)
            share = watch.of_others()
            if is_quiet(share, watch.available_s()):
                found.append(result)
                self.tally.counted.append(share)
                continue
            thrown_out.append(share)
            self.tally.thrown_out.append(share)
            print(f"{title}: a round is repeated, others had {100 * share:.0f} %", file=sys.stderr)
            if len(thrown_out) > MOST_THROWN_OUT:
                raise DisturbedError(
                    f"{title}: other processes had {100 * min(thrown_out):.0f} to {100 * max(thrown_out):.0f} % of the"
                    f" processors in {len(thrown_out)} of {len(thrown_out) + len(found)} rounds."
                    " Stop what else runs on this machine, and measure again"
                )
        return found


def is_quiet(share: float, available_s: float) -> bool:
    """Whether a round with ``available_s`` CPU seconds counts if others used this ``share``."""
    return share <= max(SHARE_OF_OTHERS, TICKS_OF_OTHERS / os.sysconf("SC_CLK_TCK") / available_s)
