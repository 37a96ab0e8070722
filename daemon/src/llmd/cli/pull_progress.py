"""Progress of a pull: bars on a terminal, occasional lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import IO, Any

from llmd.api.byte_size import format_bytes

Step = dict[str, Any]
LINE_EVERY_S = 10.0
LINE_EVERY_SHARE = 0.1


def shown(steps: Iterable[Step], stream: IO[str], *, quiet: bool = False) -> str:
    """Show the steps on a stream and return the name of the model."""
    show = nothing if quiet else bars if stream.isatty() else lines
    return show(steps, stream)


def nothing(steps: Iterable[Step], _stream: IO[str]) -> str:
    """Show nothing; return the name of the model after the last step."""
    name = ""
    for step in steps:
        name = step.get("model", "")
    return name


def lines(steps: Iterable[Step], stream: IO[str], clock: Callable[[], float] = time.monotonic) -> str:
    """Write a line when a file starts and ends, and in between every 10 s or 10 %."""
    name, shown_step, shown_at, shown_share = "", "", 0.0, 0.0
    for step in steps:
        name = step.get("model", "")
        is_new = step.get("digest", "") + step["status"] != shown_step
        share = _share(step)
        if is_new or (
            share != shown_share
            and (share == 1 or share - shown_share >= LINE_EVERY_SHARE or clock() - shown_at >= LINE_EVERY_S)
        ):
            shown_step, shown_at, shown_share = step.get("digest", "") + step["status"], clock(), share
            stream.write(f"{line_of(step)}\n")
            stream.flush()
    return name


def line_of(step: Step) -> str:
    """Format a step as a line for people."""
    if not step.get("total"):
        return str(step["status"])
    return f"{step['file']}: {amount_of(step)}"


def amount_of(step: Step) -> str:
    """Format how much of a file has been downloaded."""
    return f"{format_bytes(step.get('completed', 0))} of {format_bytes(step['total'])}"


def rate_of(bytes_per_s: float | None) -> str:
    """Format the download rate; empty until it is known."""
    return "" if bytes_per_s is None else f"{format_bytes(round(bytes_per_s))}/s"


def bars(steps: Iterable[Step], stream: IO[str]) -> str:
    """Show a bar for each file, with its rate and the time left."""
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
