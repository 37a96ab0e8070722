from __future__ import annotations

from contextlib import aclosing

import pytest

from llmd.api.errors import LlmdError
from llmd_tui.demo.recorded_daemon import SHIPPED, RecordedDaemon
from llmd_tui.demo.recording import Entry, Recording

ENTRIES = [
    Entry(0.0, event={"type": "snapshot", "number": 1}),
    Entry(2.0, event={"type": "report", "number": 2}),
    Entry(0.0, path="/llmd/devices", answer={"devices": ["cpu"]}),
    Entry(1.5, path="/llmd/devices", answer={"devices": ["cpu", "gpu"]}),
    Entry(0.5, stream="/v1/chat/completions", answer={"piece": 1}),
    Entry(0.75, stream="/v1/chat/completions", answer={"piece": 2}),
]


class Time:
    """A clock that goes on only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def passing() -> Time:
    return Time()


@pytest.fixture
def recorded(passing: Time) -> RecordedDaemon:
    return RecordedDaemon(Recording.of(ENTRIES), clock=lambda: passing.now, sleep=passing.sleep)


async def test_events_come_at_their_times_again_and_again(recorded: RecordedDaemon, passing: Time) -> None:
    seen = []
    async with aclosing(recorded.events()) as events:
        async for event in events:
            seen.append((passing.now, event.type))
            if len(seen) == 4:
                break
    assert seen == [(0.0, "snapshot"), (2.0, "report"), (3.0, "snapshot"), (5.0, "report")]


async def test_answers_are_those_of_the_time(recorded: RecordedDaemon, passing: Time) -> None:
    assert await recorded.get("/llmd/devices") == {"devices": ["cpu"]}
    passing.now = 1.6
    assert await recorded.get("/llmd/devices") == {"devices": ["cpu", "gpu"]}


async def test_streams_are_played(recorded: RecordedDaemon, passing: Time) -> None:
    pieces = [(passing.now, piece["piece"]) async for piece in recorded.stream("/v1/chat/completions", {})]
    assert pieces == [(0.5, 1), (0.75, 2)]


async def test_what_was_not_recorded_is_refused(recorded: RecordedDaemon) -> None:
    for call in (
        recorded.get("/absent"),
        recorded.post("/llmd/stop", {"model": "guide"}),
        recorded.delete("/api/delete", {"model": "guide"}),
    ):
        with pytest.raises(LlmdError, match="without --demo"):
            await call
    with pytest.raises(LlmdError, match="/llmd/pull"):
        _ = [line async for line in recorded.lines("/llmd/pull", {})]


async def test_the_shipped_recording_has_something_for_every_screen() -> None:
    recording = Recording.read(SHIPPED)
    paths = {one.path for one in recording.answers} | {one.stream for one in recording.pieces}
    wanted = {"/llmd/devices", "/llmd/plan", "/llmd/plugins", "/llmd/models", "/llmd/kv", "/llmd/logs"}
    assert wanted | {"/v1/chat/completions"} <= paths
    kinds = {str(one.event["type"]) for one in recording.events if one.event}
    assert {"snapshot", "report", "request"} <= kinds
