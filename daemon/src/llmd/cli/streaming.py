"""Prints an answer while it is generated, and measures it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import TYPE_CHECKING

import msgspec

from llmd.api.errors import LlmdError
from llmd.cli.answer_writer import AnswerWriter

if TYPE_CHECKING:
    from llmd.client import Answer


INTERRUPTED = "interrupted"
WINDOW_FULL = "cut: the context window is full"


class Printed(msgspec.Struct, frozen=True):
    """An answer that was printed. Token counts are None if Ctrl-C came before the daemon sent them."""

    text: str
    finish: str
    prompt_tokens: int | None
    completion_tokens: int | None
    first_s: float | None
    """Seconds to the first text or reasoning; None if there was none."""
    total_s: float
    """Seconds to the end of the answer."""

    @property
    def tokens_per_s(self) -> float | None:
        """Rate after the first text or reasoning; None if it is not known."""
        if not self.completion_tokens or self.first_s is None or self.total_s <= self.first_s:
            return None
        return (self.completion_tokens - 1) / (self.total_s - self.first_s)


def print_answer(
    answers: Iterable[Answer], writer: AnswerWriter, clock: Callable[[], float] = time.perf_counter
) -> Printed:
    """Write a streamed answer as it arrives. Ctrl-C ends the request and keeps what was written."""
    began = clock()
    texts: list[str] = []
    finish, usage, first_s = INTERRUPTED, None, None
    stream = iter(answers)
    try:
        with closing(stream):  # type: ignore[type-var]
            for answer in stream:
                finish, usage = answer.finish or finish, answer.usage or usage
                if not answer.text and not answer.reasoning:
                    continue
                first_s = clock() - began if first_s is None else first_s
                if answer.reasoning:
                    writer.write_reasoning(answer.reasoning)
                else:
                    texts.append(answer.text)
                    writer.write(answer.text)
    except KeyboardInterrupt:
        finish = INTERRUPTED
    except LlmdError:
        writer.end()  # the error message starts on a new line
        raise
    writer.end(interrupted=finish == INTERRUPTED)
    return Printed(
        text="".join(texts),
        finish=finish,
        prompt_tokens=usage and usage.prompt_tokens,
        completion_tokens=usage and usage.completion_tokens,
        first_s=first_s,
        total_s=clock() - began,
    )


def cut_note(printed: Printed, max_tokens: int | None) -> str:
    """Say what cut the answer short; empty if it ended by itself."""
    if printed.finish != "length":
        return ""
    if max_tokens is not None and printed.completion_tokens in {None, max_tokens}:
        return f"cut at max_tokens {max_tokens}"
    return WINDOW_FULL


def stats_line(printed: Printed) -> str:
    """Format the measurements for people."""
    parts = []
    if printed.prompt_tokens is not None:
        parts.append(f"prompt {printed.prompt_tokens} tokens")
    if printed.completion_tokens is not None:
        parts.append(f"answer {printed.completion_tokens} tokens")
    if printed.tokens_per_s is not None:
        parts.append(f"{printed.tokens_per_s:.1f} tokens/s")
    if printed.first_s is not None:
        parts.append(f"first text after {printed.first_s * 1000:.0f} ms")
    return ", ".join([*parts, f"{printed.total_s:.2f} s in total", f"finish reason {printed.finish}"])
