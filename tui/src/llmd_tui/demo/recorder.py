"""Records a daemon: ``python -m llmd_tui.demo.recorder FILE`` while it has work to do."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import click

from llmd.api.errors import LlmdError
from llmd.client import candidates
from llmd.config import load_settings
from llmd_tui.daemon.access import Daemon
from llmd_tui.daemon.http_daemon import HttpDaemon
from llmd_tui.demo.recording import Entry, write

PATHS = ("/llmd/devices", "/llmd/plan", "/llmd/plugins", "/llmd/models", "/llmd/ps", "/v1/models")
"""Asked every few seconds."""
ASK_S = 3.0
LOG_S = 2.0
"""How long the log is followed."""
QUESTION = "What does llmd do? Show me two commands as a list."


async def record(daemon: Daemon, seconds: float, model: str) -> list[Entry]:
    """Record the events and answers of a daemon, its log, and one answer of a model."""
    began = time.monotonic()
    entries: list[Entry] = []
    add = entries.append

    def now() -> float:
        return round(time.monotonic() - began, 3)

    async def record_events() -> None:
        async with aclosing(daemon.events()) as events:
            async for event in events:
                add(Entry(now(), event=event.fields))

    async def record_answers() -> None:
        for path, query in (*((path, {}) for path in PATHS), ("/llmd/kv", {"model": model})):
            try:
                entries.append(Entry(now(), path=path, answer=await daemon.get(path, **query)))
            except LlmdError as error:
                click.echo(f"{path}: {error}", err=True)

    async def record_answers_often() -> None:
        while True:
            await asyncio.sleep(ASK_S)
            await record_answers()

    await record_answers()
    tasks = [asyncio.ensure_future(record_events()), asyncio.ensure_future(record_answers_often())]  # noqa: TID251 - ended below
    await _record_streams(daemon, entries, model)
    await asyncio.sleep(max(seconds - now(), 0))
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return entries


async def _record_streams(daemon: Daemon, entries: list[Entry], model: str) -> None:
    messages = [{"role": "user", "content": QUESTION}]
    chat = {"model": model, "messages": messages, "stream": True, "stream_options": {"include_usage": True}}
    counted = await daemon.post("/v1/chat/completions/input_tokens", {"model": model, "messages": messages})
    entries.append(Entry(0, path="/v1/chat/completions/input_tokens", answer=counted))
    await _record_stream(daemon, entries, "/v1/chat/completions", chat)
    with contextlib.suppress(TimeoutError):  # the log never ends
        async with asyncio.timeout(LOG_S):
            await _record_stream(daemon, entries, "/llmd/logs", None, lines="100", level="debug", follow="1")


async def _record_stream(
    daemon: Daemon, entries: list[Entry], path: str, body: Mapping[str, Any] | None, **query: str
) -> None:
    began, add = time.monotonic(), entries.append
    async with aclosing(daemon.stream(path, body, **query)) as pieces:
        async for piece in pieces:
            add(Entry(round(time.monotonic() - began, 3), stream=path, answer=piece))


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--host", help="Address of the daemon.")
@click.option("--seconds", type=float, default=60, show_default=True)
@click.option("--model", default="guide", show_default=True, help="The model that is asked a question.")
def main(file: Path, host: str | None, seconds: float, model: str) -> None:
    """Record a daemon that has work to do."""
    daemon = HttpDaemon(candidates(load_settings({"host": host}), host))
    write(asyncio.run(_record_and_close(daemon, seconds, model)), file)


async def _record_and_close(daemon: Daemon, seconds: float, model: str) -> list[Entry]:
    try:
        return await record(daemon, seconds, model)
    finally:
        await daemon.close()


if __name__ == "__main__":
    main()
