"""Puts a load on a server: each sample when it arrives, as many at once as the traffic allows."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from llmd.benchmark.sample import Sample
from llmd.benchmark.timeline import Outcome

Ask = Callable[[Sample, int, float], Awaitable[Outcome]]
"""Asks a sample of an index that arrived at a time."""


class Run(Struct, frozen=True):
    """A load that was put on a server. ``cpu_s`` is processor time of this process, the client alone.

    ``outcomes`` are in the order of the samples; where the load was interrupted (``is_whole`` false) they are what had
    ended by then.
    """

    outcomes: tuple[Outcome, ...]
    duration_s: float
    cpu_s: float
    is_whole: bool = True


async def run_load(
    samples: Sequence[Sample],
    arrivals: Sequence[float],
    ask: Ask,
    *,
    max_concurrency: int | None = None,
    ended: Callable[[Outcome], None] = lambda _: None,
    clock: Callable[[], float] = time.perf_counter,
) -> Run:
    """Ask every sample; ``ended`` is called with each outcome. Cancelling this ends the load and returns what there is."""
    outcomes: dict[int, Outcome] = {}
    places = asyncio.Semaphore(max_concurrency or len(samples))

    async def one(index: int, arrived_s: float) -> None:
        outcome = await ask(samples[index], index, arrived_s)
        places.release()
        outcomes[index] = outcome
        ended(outcome)

    is_whole = True
    gc.collect()
    gc.freeze()  # prompts and libraries stay: collections during the load need not look at them
    began_s, cpu_s = clock(), time.process_time()
    try:
        async with asyncio.TaskGroup() as group:
            for index, arrival_s in enumerate(arrivals):
                if (wait_s := began_s + arrival_s - clock()) > 0:
                    await asyncio.sleep(wait_s)
                await places.acquire()
                group.create_task(one(index, began_s + arrival_s), name=f"request {index}")
    except asyncio.CancelledError:
        is_whole = False
        task = asyncio.current_task()
        assert task is not None
        task.uncancel()
    finally:
        gc.unfreeze()
    duration_s = clock() - began_s
    in_order = tuple(outcomes[index] for index in sorted(outcomes))
    return Run(in_order, duration_s, time.process_time() - cpu_s, is_whole)
