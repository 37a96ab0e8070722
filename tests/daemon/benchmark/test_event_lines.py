"""Events are read wherever the chunks are split."""

from __future__ import annotations

from itertools import chain

import pytest

from llmd.benchmark.event_lines import EventLines

STREAM = b': ping\n\ndata: {"a": 1}\n\nevent: x\r\ndata:{"b": "\xc3\xa9"}\r\n\r\ndata: [DONE]\n\n'
DATA = [b'{"a": 1}', b'{"b": "\xc3\xa9"}', b"[DONE]"]


def test_data_of_every_event_comes_once() -> None:
    assert EventLines().feed(STREAM) == DATA


@pytest.mark.parametrize("size", [1, 2, 3, 7, 19])
def test_events_may_be_cut_anywhere(size: int) -> None:
    lines = EventLines()
    pieces = (STREAM[start : start + size] for start in range(0, len(STREAM), size))
    assert list(chain.from_iterable(map(lines.feed, pieces))) == DATA


def test_an_event_is_there_with_the_end_of_its_line() -> None:
    lines = EventLines()
    assert lines.feed(b"data: whole") == []
    assert lines.feed(b"\n") == [b"whole"]
