"""Chooses how many threads compute and on which processors: topology, then a short measurement.

If there is only one candidate, nothing is measured and threads are not pinned.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import msgspec

from llmd.api.machine import cache_bytes, num_processors
from llmd_backend_cpu import _ext
from llmd_backend_cpu.topology import Processor, usable_processors

SPIN_US = 100
"""How long an idle thread spins before it sleeps: longer than any gap within a step."""

BUDGET_S = 0.12
CLEARLY_BETTER = 1.1
"""How much faster (decode times prefill) a placement must be than a more frugal one."""

_LEAST_BYTES, _MOST_BYTES = 64 << 20, 1 << 30


class Placement(msgspec.Struct, frozen=True):
    """A number of threads, and the processors that they are pinned to."""

    threads: int
    processors: tuple[int, ...] = ()
    """The logical processor of each thread; empty: the system places threads."""


def suggested(processors: Sequence[Processor], most: int) -> tuple[Placement, ...]:
    """Return placements worth comparing, the most frugal first, each unpinned and pinned.

    They have one thread per performance core, per core and per logical processor, but not more than ``most``,
    the processor time that control groups grant. If all processors are alike, one unpinned placement will do.
    """
    firsts = [one for one in processors if one.sibling == 0]
    kinds = ([one for one in firsts if not one.slow], firsts, processors)
    chosen = list(dict.fromkeys(tuple(kind[:most]) for kind in kinds))
    if len(chosen) == 1 and len({one.node for one in chosen[0]}) == 1:
        return (Placement(len(chosen[0])),)
    return tuple(
        placement
        for kind in chosen
        for placement in (Placement(len(kind)), Placement(len(kind), tuple(one.number for one in kind)))
    )


def best_of(placements: Sequence[Placement], rates: Sequence[tuple[float, float]]) -> Placement:
    """Return the first placement that no other clearly beats; ``rates`` are (decode, prefill)."""
    scores = [decode * prefill for decode, prefill in rates]
    return next(
        one for one, score in zip(placements, scores, strict=True) if score * CLEARLY_BETTER >= max(scores)
    )


@functools.cache
def chosen_placement(isa: str) -> Placement:
    """Return the best placement on this machine, measured once per process."""
    placements = suggested(usable_processors(), num_processors())
    if len(placements) == 1:
        return placements[0]
    native = [(one.threads, list(one.processors)) for one in placements]
    num_bytes = min(max(2 * cache_bytes(), _LEAST_BYTES), _MOST_BYTES)
    return best_of(placements, _ext.compare(isa, native, SPIN_US, num_bytes, BUDGET_S))


def spin_us(threads: int) -> int:
    """Return how long threads spin: 0 if they share processors, where spinning delays other threads."""
    return SPIN_US if threads <= num_processors() else 0


def description(threads: int | None = None) -> str:
    """Describe the number of threads; if not given, the range that a measurement may choose from."""
    sizes = {one.threads for one in suggested(usable_processors(), num_processors())}
    least, most = (min(sizes), max(sizes)) if threads is None else (threads, threads)
    return f"{'' if least == most else f'{least} to '}{most} thread{'' if most == 1 else 's'}"
