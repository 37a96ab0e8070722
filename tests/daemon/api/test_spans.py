"""A stopwatch times pieces of work one after the other, and nothing while it is off."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from llmd.api.spans import Span, Stopwatch


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes on by a second with each reading, from 1."""
    seconds = itertools.count(1.0)
    monkeypatch.setattr("llmd.api.spans.time", SimpleNamespace(perf_counter=lambda: next(seconds)))


@pytest.mark.usefixtures("clock")
def test_a_piece_of_work_begins_where_the_last_one_ended_or_where_it_was_started() -> None:
    times = Stopwatch(is_on=True)
    times.stop("launch", "arguments")
    times.stop("device", "layers")
    times.start()
    times.stop("device", "masks")
    assert times.spans == [
        Span("launch", "arguments", 1.0, 2.0),
        Span("device", "layers", 2.0, 3.0),
        Span("device", "masks", 4.0, 5.0),
    ]


def test_while_it_is_off_it_reads_no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llmd.api.spans.time", None)
    times = Stopwatch(is_on=False)
    times.start()
    times.stop("device", "layers")
    assert times.spans == []
