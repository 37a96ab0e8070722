"""Requests for an engine's counters."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import structs

from llmd.api.reports import Report
from llmd.server.engines.report_requests import ReportRequests


def report_after(steps: int) -> Report:
    return Report(steps, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0, 0)


async def two_waiting(requests: ReportRequests) -> list[asyncio.Task[Report | None]]:
    waiting = [asyncio.Task(requests.wait()) for _ in range(2)]
    await asyncio.sleep(0)
    return waiting


async def test_one_report_answers_all_who_wait() -> None:
    requests, report = ReportRequests(), report_after(3)
    waiting = await two_waiting(requests)
    requests.answer(report)
    assert await asyncio.gather(*waiting) == [report, report]


async def test_who_asks_for_sequences_waits_for_a_report_that_has_them() -> None:
    requests = ReportRequests()
    bare, whole = asyncio.Task(requests.wait()), asyncio.Task(requests.wait(sequences=True))
    await asyncio.sleep(0)
    requests.answer(report_after(1))
    assert await bare == report_after(1)
    assert not whole.done()
    report = structs.replace(report_after(2), sequences=())
    requests.answer(report)
    assert await whole == report


async def test_there_is_no_report_of_an_engine_that_died() -> None:
    requests = ReportRequests()
    waiting = await two_waiting(requests)
    requests.fail("killed by SIGKILL")
    assert await asyncio.gather(*waiting) == [None, None]


async def test_a_report_that_comes_late_is_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llmd.server.engines.report_requests.REPORT_LIMIT_S", 0.01)
    requests = ReportRequests()
    assert await requests.wait() is None
    requests.answer(report_after(1))
    monkeypatch.setattr("llmd.server.engines.report_requests.REPORT_LIMIT_S", 5.0)
    later = asyncio.Task(requests.wait())
    await asyncio.sleep(0)
    requests.answer(report_after(2))
    assert await later == report_after(2)
