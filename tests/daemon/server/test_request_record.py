from __future__ import annotations

import asyncio
import time

import pytest

from llmd.api.errors import LlmdError
from llmd.requests.fields import BadRequestError
from llmd.server.errors import DeadlineError
from llmd.server.request_record import (
    MAX_TIMEOUT_MS,
    TIMEOUT_HEADER,
    RequestRecord,
    asked_timeout_s,
    begin_record,
    current_record,
)


def test_soonest_limit_counts_from_when_the_request_came() -> None:
    record = RequestRecord(started=100.0)
    deadlines = []
    for seconds in (None, 5.0, 9.0, 0.5):
        record.limit(seconds)
        deadlines.append(record.deadline)
    assert deadlines == [None, 105.0, 105.0, 100.5]
    assert "within 0.5 seconds" in str(record.too_late())


async def test_what_is_late_ends_and_what_is_in_time_does_not() -> None:
    late = RequestRecord(started=time.monotonic(), deadline=time.monotonic())
    with pytest.raises(DeadlineError):
        async with late.in_time():
            await asyncio.Event().wait()
    async with RequestRecord().in_time():
        await asyncio.sleep(0)


async def test_time_limits_within_are_not_taken_for_the_deadline() -> None:
    record = RequestRecord(started=time.monotonic(), deadline=time.monotonic() + 1000)
    with pytest.raises(TimeoutError):
        async with record.in_time():
            raise TimeoutError


async def test_a_cancelled_request_ends_with_the_error_that_it_is_given() -> None:
    record, error = RequestRecord(), LlmdError("cancelled")
    asyncio.get_running_loop().call_soon(record.cancel, error)
    with pytest.raises(LlmdError) as caught:
        async with record.in_time():
            await asyncio.Event().wait()
    assert caught.value is record.cancelled is error
    assert not record.stops


async def test_cancelling_ends_only_present_work() -> None:
    record, stopped = RequestRecord(), list[LlmdError]()
    async with record.in_time():
        pass
    record.stops.append(stopped.append)
    record.cancel(error := LlmdError("cancelled"))
    assert stopped == [error]


async def test_each_task_has_the_record_of_its_request() -> None:
    async def answered(name: str) -> str:
        begin_record(RequestRecord(name))
        await asyncio.sleep(0)
        return current_record().request_id

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(answered(name), name=name) for name in "ab"]
    assert [task.result() for task in tasks] == ["a", "b"]
    assert current_record().request_id == ""


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "soon", "9" * 5000, "１０", str(MAX_TIMEOUT_MS + 1)])
def test_timeouts_that_are_no_milliseconds_are_refused(text: str) -> None:
    with pytest.raises(BadRequestError, match=TIMEOUT_HEADER) as caught:
        asked_timeout_s({TIMEOUT_HEADER: text})
    assert len(str(caught.value)) < 200


def test_timeouts_are_milliseconds() -> None:
    assert asked_timeout_s({TIMEOUT_HEADER: "1500"}) == 1.5
    assert asked_timeout_s({}) is None
