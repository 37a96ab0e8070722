"""Questions to an engine, and who gets its answers."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import structs

from llmd.api.reports import Report
from llmd.server.engines.pending_answers import PendingAnswers


def report_after(steps: int) -> Report:
    return Report(steps, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0, 0)


def has_sequences(report: Report) -> bool:
    return report.sequences is not None


async def two_waiting(pending: PendingAnswers[Report]) -> list[asyncio.Task[Report | None]]:
    waiting = [asyncio.Task(pending.wait()) for _ in range(2)]
    await asyncio.sleep(0)
    return waiting


async def test_one_report_answers_all_who_wait() -> None:
    pending, report = PendingAnswers[Report](), report_after(3)
    waiting = await two_waiting(pending)
    pending.answer(report)
    assert await asyncio.gather(*waiting) == [report, report]


async def test_who_asks_for_sequences_waits_for_a_report_that_has_them() -> None:
    pending = PendingAnswers[Report]()
    bare, whole = asyncio.Task(pending.wait()), asyncio.Task(pending.wait(has_sequences))
    await asyncio.sleep(0)
    pending.answer(report_after(1))
    assert await bare == report_after(1)
    assert not whole.done()
    report = structs.replace(report_after(2), sequences=())
    pending.answer(report)
    assert await whole == report


async def test_there_is_no_report_of_an_engine_that_died() -> None:
    pending = PendingAnswers[Report]()
    waiting = await two_waiting(pending)
    pending.fail("killed by SIGKILL")
    assert await asyncio.gather(*waiting) == [None, None]


async def test_a_report_that_comes_late_is_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llmd.server.engines.pending_answers.ANSWER_LIMIT_S", 0.01)
    pending = PendingAnswers[Report]()
    assert await pending.wait() is None
    pending.answer(report_after(1))
    monkeypatch.setattr("llmd.server.engines.pending_answers.ANSWER_LIMIT_S", 5.0)
    later = asyncio.Task(pending.wait())
    await asyncio.sleep(0)
    pending.answer(report_after(2))
    assert await later == report_after(2)
