"""Requests with tools offered, and whether an answer to one is right."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from guide.tool_text import Call, calls_text, results_text, told

TOOLS = Path(__file__).parent / "eval" / "tools.jsonl"
_CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)


@dataclass(frozen=True)
class ToolQuestion:
    """One request. ``calls`` are what it takes, none where no tool fits;
    after ``results`` the answer tells ``holds``.
    """

    ask: str
    tools: list[dict[str, Any]]
    calls: list[Call]
    results: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()

    @property
    def kind(self) -> Literal["tool calls", "tool results", "no call"]:
        """What is to be answered: a call, the result of one, or neither."""
        if self.results:
            return "tool results"
        return "tool calls" if self.calls else "no call"

    @property
    def expected(self) -> str:
        """The call, or what the answer holds."""
        return ", ".join(self.holds) if self.results else calls_text(self.calls) or "no call"

    @property
    def messages(self) -> list[dict[str, str]]:
        """The conversation, written as the chat template would write it."""
        asked = [{"role": "system", "content": told(self.tools)}, {"role": "user", "content": self.ask}]
        if not self.results:
            return asked
        called = {"role": "assistant", "content": calls_text(self.calls)}
        return [*asked, called, {"role": "user", "content": results_text(self.results)}]

    def is_right(self, answer: str) -> bool:
        """A call must have exactly the name and the arguments; no grammar helps the guide here."""
        if self.results:
            return all(text in answer for text in self.holds) and not calls_in(answer)
        return calls_in(answer) == self.calls


def read_tool_questions() -> list[ToolQuestion]:
    """All of eval/tools.jsonl."""
    lines = map(json.loads, TOOLS.read_text(encoding="utf-8").splitlines())
    return [
        ToolQuestion(
            line["ask"],
            line["tools"],
            [(call["name"], call["arguments"]) for call in line["calls"]],
            tuple(line.get("results", ())),
            tuple(line.get("holds", ())),
        )
        for line in lines
    ]


def calls_in(answer: str) -> list[Call] | None:
    """The calls of an answer; None if one is malformed."""
    try:
        calls = [json.loads(text) for text in _CALL.findall(answer)]
        return [(call["name"], call["arguments"]) for call in calls]
    except (ValueError, KeyError, TypeError):
        return None
