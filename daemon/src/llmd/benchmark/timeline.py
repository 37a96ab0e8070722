"""Turns the bytes of one answer, with their times, into an outcome."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
from msgspec import Struct

from llmd.api.decoding import prepared
from llmd.benchmark.event_lines import EventLines

DONE = b"[DONE]"


class Outcome(Struct, frozen=True):
    """One request as seen by its client; times in seconds, lengths in tokens."""

    prompt_len: int
    start_s: float
    """When it was sent."""
    queue_s: float = 0.0
    """How long it had waited in the client before."""
    ttft_s: float = 0.0
    """Time to the first output."""
    itls_s: tuple[float, ...] = ()
    """Times between outputs."""
    latency_s: float = 0.0
    """Time to the last chunk with a choice."""
    output_len: int | None = None
    """None: the server did not report it."""
    text: str = ""
    error: str = ""
    """Why the request failed; the other fields cover the time until then."""


class _Delta(Struct, frozen=True):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: tuple[Any, ...] | None = None

    @property
    def text(self) -> str:
        return (self.reasoning_content or self.reasoning or "") + (self.content or "")


class _Choice(Struct, frozen=True):
    text: str | None = None
    delta: _Delta = _Delta()
    finish_reason: str | None = None


class _Usage(Struct, frozen=True):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Chunk(Struct, frozen=True):
    choices: tuple[_Choice, ...] | None = None
    usage: _Usage | None = None
    error: Any = None


_CHUNK = msgspec.json.Decoder(prepared(_Chunk))


class Timeline:
    """Reads a stream of OpenAI's chat or completions API.

    A chunk counts as output if it has text or a piece of a tool call; chunks that only open or close an
    answer do not. In an answer without any text (only control tokens) the first chunk counts as the first
    output.
    """

    def __init__(self, prompt_len: int, start_s: float) -> None:
        self._prompt_len = prompt_len
        self._start_s = start_s
        self._lines = EventLines()
        self._output_s: list[float] = []
        self._choice_s: list[float] = []
        self._texts: list[str] = []
        self._usage = _Usage()
        self._has_ended = False
        self._error = ""

    def feed(self, content: bytes, now_s: float) -> None:
        """Read bytes that arrived at ``now_s``.

        Raises:
            msgspec.DecodeError: an event is not JSON, or belongs to another API.
        """
        for data in self._lines.feed(content):
            if data == DONE:
                self._has_ended = True
            elif data:
                self._read(_CHUNK.decode(data), now_s)

    def _read(self, chunk: _Chunk, now_s: float) -> None:
        if chunk.error is not None:
            self._error = error_message(chunk.error)
        self._usage = chunk.usage or self._usage
        if not chunk.choices:
            return
        choice = chunk.choices[0]
        self._choice_s.append(now_s)
        self._has_ended |= choice.finish_reason is not None
        if text := (choice.text or choice.delta.text):
            self._texts.append(text)
        if text or choice.delta.tool_calls:
            self._output_s.append(now_s)

    def outcome(self, queue_s: float = 0.0, error: str = "") -> Outcome:
        """Return the outcome. ``error`` says why the stream failed; a stream that stops early is an error,
        too.
        """
        outputs = self._output_s or self._choice_s[:1]
        if not error and not self._error and not (self._has_ended and outputs):
            error = "the stream ended before the answer did"
        usage = self._usage
        return Outcome(
            prompt_len=self._prompt_len if usage.prompt_tokens is None else usage.prompt_tokens,
            start_s=self._start_s,
            queue_s=queue_s,
            ttft_s=outputs[0] - self._start_s if outputs else 0.0,
            itls_s=tuple(after - before for before, after in itertools.pairwise(outputs)),
            latency_s=self._choice_s[-1] - self._start_s if self._choice_s else 0.0,
            output_len=usage.completion_tokens,
            text="".join(self._texts),
            error=self._error or error,
        )


def error_message(body: Any) -> str:
    """Return the message of an error in OpenAI's form or a similar one."""
    error = body.get("error") or body if isinstance(body, dict) else body
    message = error.get("message") if isinstance(error, dict) else error
    return str(message or error)
