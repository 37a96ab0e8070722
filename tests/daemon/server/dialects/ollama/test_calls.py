from __future__ import annotations

from llmd.api.parts import CallArguments, CallStart, Text
from llmd.server.dialects.ollama.calls import ToolCalls


def test_call_arrives_whole_when_the_next_one_begins() -> None:
    calls = ToolCalls()
    assert calls.feed([Text("let me see"), CallStart(0, "weather"), CallArguments(0, '{"city"')]) == []
    (first,) = calls.feed([CallArguments(0, ': "Oslo"}'), CallStart(1, "time")])
    assert first["function"] == {"index": 0, "name": "weather", "arguments": {"city": "Oslo"}}
    (second,) = calls.finish()
    assert second["function"] == {"index": 1, "name": "time", "arguments": {}}
    assert first["id"] != second["id"]
    assert calls.finish() == []


def test_call_that_the_limit_cut_short_is_none() -> None:
    calls = ToolCalls()
    calls.feed([CallStart(0, "weather"), CallArguments(0, '{"city": "Os')])
    assert calls.finish() == []
