"""What holds for every file of traced steps."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from llmd.api.spans import CLOCK_TOLERANCE_S

Track = tuple[int, int]
_EVENT: dict[str, type | tuple[type, ...]] = {
    "name": str,
    "cat": str,
    "ts": (int, float),
    "dur": (int, float),
    "pid": int,
    "tid": int,
    "args": dict,
}
_METADATA = {"process_name", "process_sort_index", "thread_name", "thread_sort_index"}
_ROUNDING_US = 0.002
_DEVICE = {"launch", "device", "copy", "weights"}


def check_trace(trace: Mapping[str, Any]) -> dict[Track, str]:
    """Check keys, names of tracks, and that times are within their step and do not overlap on a track.

    Returns:
        The names of all tracks, as ``process / thread``.
    """
    assert trace["displayTimeUnit"] == "ms"
    events = trace["traceEvents"]
    assert {event["ph"] for event in events} <= {"M", "X"}
    spans = [event for event in events if event["ph"] == "X"]
    for event in spans:
        assert all(isinstance(event[key], kind) for key, kind in _EVENT.items()), event
        assert event["dur"] >= 0
    names = _names([event for event in events if event["ph"] == "M"])
    assert {(event["pid"], event["tid"]) for event in spans} <= set(names)
    _check_parents(spans)
    _check_tracks(spans)
    return names


def _names(metadata: list[dict[str, Any]]) -> dict[Track, str]:
    assert {event["name"] for event in metadata} <= _METADATA
    processes = {one["pid"]: one["args"]["name"] for one in metadata if one["name"] == "process_name"}
    threads = [one for one in metadata if one["name"] == "thread_name"]
    return {(one["pid"], one["tid"]): f"{processes[one['pid']]} / {one['args']['name']}" for one in threads}


def _check_parents(spans: list[dict[str, Any]]) -> None:
    """Check that every span lies within its step."""
    steps = {event["args"]["step"]: event for event in spans if event["cat"] == "step"}
    assert len(steps) == sum(event["cat"] == "step" for event in spans)
    for event in spans:
        parent = steps[event["args"]["step"]]
        slack = 1e6 * CLOCK_TOLERANCE_S if event["cat"] in _DEVICE else _ROUNDING_US
        assert event["ts"] >= parent["ts"] - slack, (event, parent)
        assert event["ts"] + event["dur"] <= parent["ts"] + parent["dur"] + slack, (event, parent)


def _check_tracks(spans: list[dict[str, Any]]) -> None:
    """Check that spans of one track do not overlap."""
    tracks = defaultdict(list)
    for event in spans:
        tracks[event["pid"], event["tid"]].append(event)
    for track in tracks.values():
        ordered = sorted(track, key=lambda event: (event["ts"], event["dur"]))
        for before, after in itertools.pairwise(ordered):
            assert before["ts"] + before["dur"] <= after["ts"] + _ROUNDING_US, (before, after)
