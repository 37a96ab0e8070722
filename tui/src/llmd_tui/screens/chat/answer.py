"""An answer while it arrives, and what it says about itself when it ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmd.api.errors import ContextLengthError, DaemonUnreachableError, LlmdError
from llmd_tui.screens.chat.store.records import Call, Content, Ending, Figures

CONTROLS = {code: None for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}
"""A model must not control the terminal."""
EMPTY = Content()
NO_CALL = Call("", "")
LEAST_S = 0.1
"""Time from which a rate says something: a busy machine hands over many tokens at once."""
CUT = "the connection ended before the answer did"


class Answer:
    """Takes the chunks of a stream. Times are seconds of any clock that never goes back."""

    def __init__(
        self, began: float, *, model: str, seed: int | None, window: int | None, before: Content = EMPTY
    ) -> None:
        """``before`` is the answer that is continued; ``window`` is the length of the context, if known."""
        self._began = began
        self._window = window
        self._seed = seed
        self._model = model
        self._text = [before.text]
        self._reasoning = [before.reasoning]
        self._calls = dict(enumerate(before.calls))
        self._first: float | None = None
        self._last = began
        self._pieces = 0
        self._usage: Mapping[str, Any] = {}
        self._finish = ""
        self.ending: Ending = "running"
        self.reason = ""

    @property
    def has_begun(self) -> bool:
        """Whether something of the answer has arrived."""
        return self._first is not None

    def feed(self, chunk: Mapping[str, Any], now: float) -> None:
        """Take in a chunk."""
        self._usage = chunk.get("usage") or self._usage
        self._model = str(chunk.get("model") or self._model)
        for choice in chunk.get("choices") or ():
            self._finish = choice.get("finish_reason") or self._finish
            if self._take(choice.get("delta") or {}):
                self._first = now if self._first is None else self._first
                self._last = now
                self._pieces += 1

    def end(self) -> None:
        """Take in the end of the stream."""
        if not self._finish:
            self.ending, self.reason = "lost", CUT
        elif self._finish == "length":
            self.ending = "context" if self._is_full() else "max_tokens"
        else:
            self.ending = ""

    def stop(self) -> None:
        """Take in that a person stopped it."""
        self.ending = "stopped"

    def fail(self, error: LlmdError) -> None:
        """Take in that it failed."""
        self.reason = str(error)
        if isinstance(error, ContextLengthError):
            self.ending = "context"
        else:
            self.ending = "lost" if isinstance(error, DaemonUnreachableError) else "failed"

    def content(self) -> Content:
        """Return the answer up to now."""
        return Content(
            text="".join(self._text),
            reasoning="".join(self._reasoning),
            calls=tuple(self._calls.values()),
            figures=self._figures(),
            ending=self.ending,
            reason=self.reason,
        )

    def _take(self, delta: Mapping[str, Any]) -> bool:
        """Take in what is new; return whether anything is."""
        text = _clean(delta.get("content"))
        reasoning = _clean(delta.get("reasoning_content") or delta.get("reasoning"))
        calls = delta.get("tool_calls") or ()
        if text:
            self._text.append(text)
        if reasoning:
            self._reasoning.append(reasoning)
        for call in calls:
            place = int(call.get("index", len(self._calls)))
            function = call.get("function") or {}
            known = self._calls.get(place, NO_CALL)
            self._calls[place] = Call(
                known.name + _clean(function.get("name")),
                known.arguments + _clean(function.get("arguments")),
                known.call_id or _clean(call.get("id")),
            )
        return bool(text or reasoning or calls)

    def _figures(self) -> Figures:
        usage = self._usage
        tokens = usage.get("completion_tokens")
        return Figures(
            model=self._model,
            prompt_tokens=usage.get("prompt_tokens"),
            cached_tokens=(usage.get("prompt_tokens_details") or {}).get("cached_tokens"),
            completion_tokens=tokens,
            ttft_ms=None if self._first is None else (self._first - self._began) * 1e3,
            tokens_per_s=self._rate(tokens),
            seed=self._seed,
        )

    def _rate(self, tokens: int | None) -> float | None:
        """Return tokens per second after the first; chunks are counted until the usage is known."""
        count = self._pieces if tokens is None else tokens
        if self._first is None or count < 2 or self._last - self._first < LEAST_S:
            return None
        return (count - 1) / (self._last - self._first)

    def _is_full(self) -> bool:
        """Whether the context window, not the limit on the answer, ended it."""
        total = self._usage.get("total_tokens")
        return self._window is not None and total is not None and total >= self._window


def _clean(text: Any) -> str:
    return str(text).translate(CONTROLS) if text else ""
