from __future__ import annotations

import asyncio

import pytest

from llmd.server.tasks import OwnedTask, unless


async def test_closing_ends_the_work_and_waits_for_it() -> None:
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = OwnedTask(work(), "test")
    await asyncio.sleep(0)
    assert not await task.join(0)
    await task.close()
    assert ended.is_set()
    assert await task.join()


async def test_failures_are_logged_under_the_tasks_name(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        raise ValueError("broken")

    await OwnedTask(work(), "the worker").join()
    await asyncio.sleep(0)
    (record,) = caplog.records
    assert vars(record)["task"] == "the worker"
    assert "broken" in caplog.text


async def test_work_ends_where_the_event_comes_first() -> None:
    event = asyncio.Event()

    async def work() -> int:
        event.set()
        await asyncio.Event().wait()
        return 1

    assert await unless(event, work(), "work") is None


async def test_work_that_is_done_first_gives_its_result_or_its_error() -> None:
    async def work() -> int:
        return 1

    async def failing() -> int:
        raise ValueError("broken")

    assert await unless(asyncio.Event(), work(), "work") == 1
    with pytest.raises(ValueError, match="broken"):
        await unless(asyncio.Event(), failing(), "work")
