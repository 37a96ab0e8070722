"""Chooses lines of a log file by level and request. An event may have several lines."""

from __future__ import annotations

import json
import re

from llmd.cli.daemon_logs.options import LEVELS, LogView

_TEXT_EVENT = re.compile(r"\d{4}-\d\d-\d\dT\S+ (debug|info|warning|error|critical) ")


class LineFilter:
    """Decides line by line: the lines below an event belong to it."""

    def __init__(self, view: LogView) -> None:
        wanted = LEVELS if view.level is None else LEVELS[: LEVELS.index(view.level) + 1]
        self._levels = {*wanted, "critical"}
        self._request = view.request
        # Lines before the first event, such as those that a library writes, have no level.
        self._takes_all = view.level is None and view.request is None
        self._passes = self._takes_all

    def __call__(self, line: str) -> bool:
        """Return whether to show the next line."""
        if self._takes_all:
            return True
        level = level_of(line)
        if level is not None:
            self._passes = level in self._levels and self._is_of_request(line)
        return self._passes

    def _is_of_request(self, line: str) -> bool:
        if self._request is None:
            return True
        if line.startswith("{"):
            return bool(json.loads(line).get("request_id") == self._request)
        words = line.split(" ")
        return f"request_id={self._request}" in words or f'request_id="{self._request}"' in words


def level_of(line: str) -> str | None:
    """Return the level of the event that a line begins; None if it begins none."""
    if found := _TEXT_EVENT.match(line):
        return found[1]
    if line.startswith("{"):
        try:
            level = json.loads(line).get("level")
        except ValueError:
            return None
        return level if isinstance(level, str) else None
    return None
