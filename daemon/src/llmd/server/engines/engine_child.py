"""Starts an engine's process. Imports little, so that an engine can start before the daemon's own imports."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct


def engine_command(cache: Path, choices: Path | None = None) -> tuple[str, ...]:
    """The command of an engine, without ``--fd N``. ``cache`` is the directory of cached device probes,
    ``choices`` the file of the plugins that the user disabled.
    """
    chosen = ("--plugin-choices", str(choices)) if choices else ()
    return (sys.executable, "-m", "llmd.engine", "--cache", str(cache), *chosen)


class EngineChild(Struct, frozen=True):
    """A process that waits for its first message, and our end of the socket to it."""

    process: asyncio.subprocess.Process
    socket: socket.socket

    @property
    def has_ended(self) -> bool:
        return self.process.returncode is not None

    async def end(self) -> None:
        """Kill the process and wait for it to end."""
        self.socket.close()
        if not self.has_ended:
            self.process.kill()
        await self.process.communicate()


async def start_child(command: Sequence[str]) -> EngineChild:
    """Start ``command --fd N``.

    The process leads its own session: Ctrl-C in the daemon's terminal drains the daemon and must not end
    engines.

    Raises:
        OSError: the process cannot be started.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        fd = theirs.fileno()
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                "--fd",
                str(fd),
                pass_fds=(fd,),
                stdin=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            raise
    return EngineChild(process, ours)
