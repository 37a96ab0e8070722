"""How many threads compute, and where: what the topology suggests, and what a short measurement says of it.

Where there is one suggestion nothing is measured, and threads run where the system puts them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import msgspec

from llmd.api.machine import cache_bytes, num_processors
from llmd_backend_cpu import _ext
from llmd_backend_cpu.topology import Processor, usable_processors

SPIN_US = 100
"""How long an idle thread waits for the next instruction before it sleeps: longer than any gap inside a step."""

BUDGET_S = 0.12
CLEARLY_BETTER = 1.1
"""What a placement must gain, decode times prefill, over one that takes fewer threads or leaves them free."""

_LEAST_BYTES, _MOST_BYTES = 64 << 20, 1 << 30


class Placement(msgspec.Struct, frozen=True):
    """``processors`` has the logical processor that each thread stays on; empty: the system places them."""

    threads: int
    processors: tuple[int, ...] = ()


def suggested(processors: Sequence[Processor], most: int) -> tuple[Placement, ...]:
    """Placements worth comparing, the most frugal first, each with threads that are free and that stay.

    One thread for each performance core, for each core, for each logical processor, but not more than ``most``: the
    processor time that control groups grant. Threads that may run anywhere are enough where all processors are alike.
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
    """The first placement that none is clearly better than; rates are those of decode and prefill."""
    scores = [decode * prefill for decode, prefill in rates]
    return next(
        one for one, score in zip(placements, scores, strict=True) if score * CLEARLY_BETTER >= max(scores)
    )


@functools.cache
def chosen_placement(isa: str) -> Placement:
    """How this machine's processors are used best, measured once in a process."""
    placements = suggested(usable_processors(), num_processors())
    if len(placements) == 1:
        return placements[0]
    native = [(one.threads, list(one.processors)) for one in placements]
    num_bytes = min(max(2 * cache_bytes(), _LEAST_BYTES), _MOST_BYTES)
    return best_of(placements, _ext.compare(isa, native, SPIN_US, num_bytes, BUDGET_S))


def spin_us(threads: int) -> int:
    """How long threads spin: a thread that waits for one without a processor takes the processor from it."""
    return SPIN_US if threads <= num_processors() else 0


def description(threads: int | None = None) -> str:
    """So many threads, or as many as a measurement may choose."""
    sizes = {one.threads for one in suggested(usable_processors(), num_processors())}
    least, most = (min(sizes), max(sizes)) if threads is None else (threads, threads)
    return f"{'' if least == most else f'{least} to '}{most} thread{'' if most == 1 else 's'}"
