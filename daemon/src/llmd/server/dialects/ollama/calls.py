"""Tool calls: each is sent whole, with its arguments as an object."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

import msgspec

from llmd.api.parts import AnswerPart, CallArguments, CallStart


class ToolCalls:
    """Collects the calls in the parts of one answer."""

    def __init__(self) -> None:
        self._start: CallStart | None = None
        self._arguments: list[str] = []

    def feed(self, parts: Iterable[AnswerPart]) -> list[dict[str, Any]]:
        """Return the calls that end in these parts."""
        ended: list[dict[str, Any]] = []
        for part in parts:
            if isinstance(part, CallStart):
                ended += self.finish()
                self._start = part
            elif isinstance(part, CallArguments):
                self._arguments.append(part.json)
        return ended

    def finish(self) -> list[dict[str, Any]]:
        """Return the last open call; nothing if the token limit cut it off."""
        start, text = self._start, "".join(self._arguments)
        self._start, self._arguments = None, []
        if start is None:
            return []
        try:
            arguments = msgspec.json.decode(text or "{}", type=dict[str, Any])
        except msgspec.DecodeError:
            return []
        function = {"index": start.index, "name": start.name, "arguments": arguments}
        return [{"id": f"call_{uuid.uuid4().hex[:8]}", "function": function}]
