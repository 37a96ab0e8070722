"""Prints an answer while it is made, and measures it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import TYPE_CHECKING

import click
import msgspec

if TYPE_CHECKING:
    from llmd.client import Answer


CONTROLS = {code: None for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}


class Printed(msgspec.Struct, frozen=True):
    """An answer that was printed. Tokens are None where Ctrl-C came before the daemon had counted them.

    ``first_s`` is the time to the first text or reasoning, ``total_s`` to the last; None where none came.
    """

    text: str
    finish: str
    prompt_tokens: int | None
    completion_tokens: int | None
    first_s: float | None
    total_s: float

    @property
    def tokens_per_s(self) -> float | None:
        """Rate after the first text."""
        if not self.completion_tokens or self.first_s is None or self.total_s <= self.first_s:
            return None
        return (self.completion_tokens - 1) / (self.total_s - self.first_s)


def show_text(text: str) -> None:
    """Print a piece of an answer. What a model says does not steer a terminal; pipes get it as it is."""
    shown = text.translate(CONTROLS) if sys.stdout.isatty() else text
    click.echo(shown, nl=False, color=True)  # without color click would take escapes out of pipes


def show_reasoning(text: str) -> None:
    """Print what a model thinks, dimmed, to people alone: who reads a pipe wants the answer."""
    if sys.stdout.isatty():
        click.secho(text.translate(CONTROLS), nl=False, dim=True)


def print_answer(
    answers: Iterable[Answer],
    write: Callable[[str], None],
    clock: Callable[[], float] = time.perf_counter,
    *,
    write_reasoning: Callable[[str], None] = lambda _: None,
) -> Printed:
    """Write the text of a streamed answer as it comes. Ctrl-C ends the request and keeps what was written.

    ``write_reasoning`` gets what the model thinks before, and an empty line at its end.
    """
    began = clock()
    texts: list[str] = []
    finish, usage, first_s = "interrupted", None, None
    is_thinking = False
    stream = iter(answers)
    try:
        with closing(stream):  # type: ignore[type-var]
            for answer in stream:
                finish, usage = answer.finish or finish, answer.usage or usage
                if not answer.text and not answer.reasoning:
                    continue
                first_s = clock() - began if first_s is None else first_s
                if answer.reasoning:
                    write_reasoning(answer.reasoning)
                    is_thinking = True
                    continue
                if is_thinking:
                    write_reasoning("\n\n")
                    is_thinking = False
                texts.append(answer.text)
                write(answer.text)
    except KeyboardInterrupt:
        finish = "interrupted"
    return Printed(
        text="".join(texts),
        finish=finish,
        prompt_tokens=usage and usage.prompt_tokens,
        completion_tokens=usage and usage.completion_tokens,
        first_s=first_s,
        total_s=clock() - began,
    )


def stats_line(printed: Printed) -> str:
    """What was measured, for people."""
    parts = []
    if printed.prompt_tokens is not None:
        parts.append(f"prompt {printed.prompt_tokens} tokens")
    if printed.completion_tokens is not None:
        parts.append(f"answer {printed.completion_tokens} tokens")
    if printed.tokens_per_s is not None:
        parts.append(f"{printed.tokens_per_s:.1f} tokens/s")
    if printed.first_s is not None:
        parts.append(f"first text after {printed.first_s * 1000:.0f} ms")
    return ", ".join([*parts, f"{printed.total_s:.2f} s in all"])
