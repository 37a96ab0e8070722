"""Runs a load: sends each sample when it arrives, up to the concurrency limit."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from llmd.benchmark.timeline import Outcome


class Sample(Struct, frozen=True):
    """One request of a load: a prompt and the length of its answer."""

    prompt: str | tuple[int, ...]
    """Text or token ids."""
    prompt_len: int
    """In tokens."""
    output_len: int
    """Maximum length of the answer in tokens."""


Ask = Callable[[Sample, int, float], Awaitable[Outcome]]
"""Sends a sample, given the sample, its index and its arrival time."""


class Run(Struct, frozen=True):
    """The result of a load."""

    outcomes: tuple[Outcome, ...]
    """In the order of the samples; of an interrupted load only those of ended requests."""
    duration_s: float
    cpu_s: float
    """CPU time of this process, which is only the client."""
    is_whole: bool = True
    """Whether the load ran to its end."""


async def run_load(
    samples: Sequence[Sample],
    arrivals: Sequence[float],
    ask: Ask,
    *,
    max_concurrency: int | None = None,
    ended: Callable[[Outcome], None] = lambda _: None,
    clock: Callable[[], float] = time.perf_counter,
) -> Run:
    """Send every sample; ``ended`` is called with each outcome. Cancelling returns the outcomes so far."""
    outcomes: dict[int, Outcome] = {}
    places = asyncio.Semaphore(max_concurrency or len(samples))

    async def one(index: int, arrived_s: float) -> None:
        outcome = await ask(samples[index], index, arrived_s)
        places.release()
        outcomes[index] = outcome
        ended(outcome)

    is_whole = True
    gc.collect()
    gc.freeze()  # prompts and libraries stay alive: exclude them from collections during the load
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
