from __future__ import annotations

import asyncio

import pytest

from llmd.api.errors import HubError
from llmd.registry.pull import PullStep
from llmd.server.models.pull_subscriber import PullSubscriber


async def test_one_who_joins_late_is_told_what_has_happened() -> None:
    subscriber = PullSubscriber([PullStep("pulling manifest"), PullStep("pulling", "a", 10, 7)])
    subscriber.push(PullStep("success"))
    subscriber.end(None)
    assert [step.status async for step in subscriber.steps()] == ["pulling manifest", "pulling", "success"]


async def test_steps_of_one_file_replace_each_other_while_nobody_reads() -> None:
    subscriber = PullSubscriber([])
    for completed in range(1000):
        subscriber.push(PullStep("pulling", "a", 1000, completed))
        subscriber.push(PullStep("pulling", "b", 1000, completed))
    subscriber.end(None)
    assert [(step.digest, step.completed) async for step in subscriber.steps()] == [("a", 999), ("b", 999)]


async def test_in_silence_the_last_step_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llmd.server.models.pull_subscriber.EVERY_S", 0.001)
    subscriber = PullSubscriber([PullStep("verifying sha256 digest")])
    steps = subscriber.steps()
    assert [await anext(steps) for _ in range(3)] == [PullStep("verifying sha256 digest")] * 3


async def test_a_failure_comes_after_the_last_step() -> None:
    subscriber = PullSubscriber([PullStep("pulling manifest")])
    steps = subscriber.steps()
    await anext(steps)
    asyncio.get_running_loop().call_soon(subscriber.end, HubError("gone"))
    with pytest.raises(HubError, match="gone"):
        await anext(steps)
