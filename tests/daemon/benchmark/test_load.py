"""Loads send requests in order up to the limit, and keep finished ones when interrupted."""

from __future__ import annotations

import asyncio

import pytest

from llmd.benchmark.load import Run, Sample, run_load
from llmd.benchmark.timeline import Outcome

SAMPLES = [Sample(f"prompt {i}", i, 1) for i in range(12)]


class Server:
    """Counts concurrent requests; each waits until the test releases it."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.running = 0
        self.most = 0
        self.order: list[int] = []
        self.is_full = asyncio.Event()
        self.may_go_on = asyncio.Event()

    async def ask(self, sample: Sample, index: int, arrived_s: float) -> Outcome:
        self.running += 1
        self.most = max(self.most, self.running)
        self.order.append(index)
        if self.running == self.expected:
            self.is_full.set()
        await self.may_go_on.wait()
        self.running -= 1
        return Outcome(sample.prompt_len, arrived_s)


async def load(server: Server, max_concurrency: int | None) -> Run:
    return await run_load(SAMPLES, [0.0] * len(SAMPLES), server.ask, max_concurrency=max_concurrency)


async def test_asks_all_at_once_without_a_limit_and_no_more_than_the_limit() -> None:
    for limit, most in ((None, 12), (5, 5), (100, 12)):
        server = Server(most)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(load(server, limit))
            await server.is_full.wait()
            server.may_go_on.set()
        run = running.result()
        assert server.most == most
        assert server.order == list(range(12))
        assert [outcome.prompt_len for outcome in run.outcomes] == list(range(12))
        assert run.is_whole


async def test_what_waits_for_a_place_has_arrived_when_it_was_due() -> None:
    now = 100.0
    asked_s: list[float] = []

    async def ask(sample: Sample, _: int, arrived_s: float) -> Outcome:
        nonlocal now
        asked_s.append(now)
        now += 5.0
        return Outcome(sample.prompt_len, now, queue_s=now - arrived_s)

    run = await run_load(SAMPLES[:3], [0.0, 0.01, 0.02], ask, max_concurrency=1, clock=lambda: now)
    assert asked_s == [100.0, 105.0, 110.0]
    assert [outcome.queue_s for outcome in run.outcomes] == pytest.approx([5.0, 9.99, 14.98])
    assert run.duration_s == 15.0


async def test_requests_arrive_when_they_are_due() -> None:
    async def ask(sample: Sample, _: int, arrived_s: float) -> Outcome:
        return Outcome(sample.prompt_len, arrived_s)

    due = [0.0, 0.02, 0.05]
    run = await run_load(SAMPLES[:3], due, ask, clock=asyncio.get_running_loop().time)
    began = run.outcomes[0].start_s
    assert all(
        outcome.start_s - began >= due_s - 0.01 for outcome, due_s in zip(run.outcomes, due, strict=True)
    )
    assert run.duration_s >= 0.04


async def test_outcomes_stand_in_the_order_of_the_samples_and_are_told_as_they_come() -> None:
    told: list[int] = []

    async def ask(sample: Sample, index: int, _: float) -> Outcome:
        for _ in range(12 - index):
            await asyncio.sleep(0)
        return Outcome(sample.prompt_len, 0.0)

    run = await run_load(SAMPLES, [0.0] * 12, ask, ended=lambda outcome: told.append(outcome.prompt_len))
    assert told == list(range(11, -1, -1))
    assert [outcome.prompt_len for outcome in run.outcomes] == list(range(12))


async def test_an_interrupted_load_has_what_had_ended() -> None:
    server = Server(9)

    async def ask(sample: Sample, index: int, arrived_s: float) -> Outcome:
        return Outcome(index, 0.0) if index < 3 else await server.ask(sample, index, arrived_s)

    async def then_on() -> tuple[Run, str]:
        run = await run_load(SAMPLES, [0.0] * 12, ask)
        await asyncio.sleep(0)
        return run, "the caller goes on"

    task = asyncio.Task(then_on(), name="load")
    await server.is_full.wait()
    task.cancel()
    run, said = await task
    assert [outcome.prompt_len for outcome in run.outcomes] == [0, 1, 2]
    assert (run.is_whole, said) == (False, "the caller goes on")
