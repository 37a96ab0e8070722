from __future__ import annotations

import asyncio

import pytest

from llmd.server.activity import Activity
from llmd.server.errors import UnavailableError


async def test_drain_waits_for_running_requests() -> None:
    activity = Activity()
    with activity.request():
        draining = asyncio.Task(activity.drain(10.0), name="drain")
        await asyncio.sleep(0)
        assert not draining.done()
    assert await draining
    assert activity.running == 0


async def test_drain_gives_up_at_its_limit() -> None:
    activity = Activity()
    with activity.request():
        assert not await activity.drain(0.0)


async def test_new_requests_are_refused_with_a_delay_once_it_drains() -> None:
    activity = Activity()
    assert await activity.drain(10.0)
    with pytest.raises(UnavailableError) as caught, activity.request():
        pass
    assert caught.value.retry_after_s is not None
    assert caught.value.code == "shutting_down"


async def test_it_is_quiet_once_no_request_has_run_for_so_long() -> None:
    activity = Activity()
    with activity.request():
        quiet = asyncio.Task(activity.quiet(0.05), name="quiet")
        await asyncio.sleep(0.1)
        assert not quiet.done()
    await asyncio.sleep(0.02)
    with activity.request():  # shorter than the quiet time, but noticed all the same
        pass
    began = asyncio.get_running_loop().time()
    await quiet
    assert asyncio.get_running_loop().time() - began > 0.04
