"""How far a pull is: bars on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import IO, Any

from llmd.api.byte_size import format_bytes

Step = dict[str, Any]
LINE_EVERY_S = 10.0
LINE_EVERY_SHARE = 0.1


def shown(steps: Iterable[Step], stream: IO[str], *, quiet: bool = False) -> str:
    """Show every step on a stream; returns the name of the model."""
    show = nothing if quiet else bars if stream.isatty() else lines
    return show(steps, stream)


def nothing(steps: Iterable[Step], _stream: IO[str]) -> str:
    """Wait for the end."""
    name = ""
    for step in steps:
        name = step.get("model", "")
    return name


def lines(steps: Iterable[Step], stream: IO[str], clock: Callable[[], float] = time.monotonic) -> str:
    """A line for each file when it begins and ends, and between them each 10 s or each 10 %."""
    name, told, told_at, told_share = "", "", 0.0, 0.0
    for step in steps:
        name = step.get("model", "")
        is_new = step.get("digest", "") + step["status"] != told
        share = _share(step)
        if is_new or (
            share != told_share
            and (share == 1 or share - told_share >= LINE_EVERY_SHARE or clock() - told_at >= LINE_EVERY_S)
        ):
            told, told_at, told_share = step.get("digest", "") + step["status"], clock(), share
            stream.write(f"{line_of(step)}\n")
            stream.flush()
    return name


def line_of(step: Step) -> str:
    """A step as a line for people."""
    if not step.get("total"):
        return str(step["status"])
    return f"{step['file']}: {amount_of(step)}"


def amount_of(step: Step) -> str:
    """How much of a file has come."""
    return f"{format_bytes(step.get('completed', 0))} of {format_bytes(step['total'])}"


def rate_of(bytes_per_s: float | None) -> str:
    """How fast a file comes; nothing until that is known."""
    return "" if bytes_per_s is None else f"{format_bytes(round(bytes_per_s))}/s"


def bars(steps: Iterable[Step], stream: IO[str]) -> str:
    """A bar for each file, with its rate and the time that is left."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[amount]}"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    name = ""
    with Progress(*columns, console=Console(file=stream)) as progress:
        tasks: dict[str, Any] = {}
        for step in steps:
            name = step.get("model", "")
            if not step.get("total"):
                continue
            if step["digest"] not in tasks:
                tasks[step["digest"]] = progress.add_task(
                    step["file"], total=step["total"], amount="", rate=""
                )
            task = tasks[step["digest"]]
            progress.update(
                task,
                completed=step.get("completed", 0),
                amount=amount_of(step),
                rate=rate_of(progress.tasks[task].speed),
            )
    return name


def _share(step: Step) -> float:
    total = step.get("total", 0)
    return step.get("completed", 0) / total if total else 0.0
