"""``llmd tui --text``: lines of text for screen readers and logs, without a full screen."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable

import click

from llmd.api.errors import LlmdError
from llmd_tui.daemon.access import Daemon
from llmd_tui.state.follower import Follower
from llmd_tui.text_report import TextReport, opening

Write = Callable[[str], None]


def run_as_text(daemon: Daemon, write: Write = click.echo) -> None:
    """Write what a daemon does until Ctrl-C is pressed or the reader of the output has gone.

    Raises:
        RefusedError: the daemon does not allow this.
    """
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(follow_as_text(daemon, write))


async def follow_as_text(daemon: Daemon, write: Write, clock: Callable[[], float] = time.monotonic) -> None:
    """Write the state of a daemon once, then a line for each thing that changes, until cancelled.

    Raises:
        RefusedError: the daemon does not allow this.
    """
    follower = Follower(daemon, clock)
    try:
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(follower.follow(), name="events")
            with contextlib.suppress(BrokenPipeError):  # the reader of the output has gone
                if await _write_opening(daemon, follower, write):
                    await _write_changes(follower, write, clock)
            following.cancel()
    finally:
        await daemon.close()
    if follower.refusal is not None:
        raise follower.refusal


async def _write_opening(daemon: Daemon, follower: Follower, write: Write) -> bool:
    """Return whether the daemon may be followed."""
    if not await _connected(follower, write):
        return False
    devices, failure = [], ""
    try:
        devices = (await daemon.get("/llmd/devices")).get("devices", [])
    except LlmdError as error:
        failure = str(error)
    for line in opening(daemon.address, follower.state, devices, failure):
        write(line)
    return True


async def _connected(follower: Follower, write: Write) -> bool:
    """Wait for the first event; say once why there is none. Returns False if the daemon refuses."""
    was_told = False
    while follower.status not in {"connected", "refused"}:
        await follower.changed.wait()
        follower.changed.clear()
        if follower.status == "lost" and not was_told:
            write(f"No daemon answers: {follower.reason}. Connecting again.")
            was_told = True
    return follower.status == "connected"


async def _write_changes(follower: Follower, write: Write, clock: Callable[[], float]) -> None:
    report = TextReport(follower.state)
    while follower.status != "refused":
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(follower.changed.wait(), report.lines.wait_s(clock()))
        follower.changed.clear()
        for line in report.changes(follower.state, follower.status, follower.reason, clock()):
            write(line)
