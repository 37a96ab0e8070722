"""A child waits for its first message on the inherited socket, and is killed by `end`."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from llmd.server.engines.engine_child import start_child

ECHO = """
import socket, sys
with socket.socket(fileno=int(sys.argv[sys.argv.index("--fd") + 1])) as sock:
    sock.sendall(sock.recv(9)[::-1])
"""
HEAVY = ("numpy", "aiohttp")


async def test_a_child_has_the_other_end_of_the_socket() -> None:
    child = await start_child([sys.executable, "-c", ECHO])
    child.socket.sendall(b"load")
    loop = asyncio.get_running_loop()
    child.socket.setblocking(False)
    assert await loop.sock_recv(child.socket, 9) == b"daol"
    await child.process.wait()
    await child.end()
    assert child.has_ended
    assert child.process.returncode == 0


async def test_a_child_that_does_not_end_by_itself_is_killed() -> None:
    child = await start_child([sys.executable, "-c", "import time; time.sleep(99)"])
    assert not child.has_ended
    await child.end()
    assert child.process.returncode == -9


async def test_a_command_that_cannot_be_started_says_so() -> None:
    with pytest.raises(FileNotFoundError):
        await start_child(["/nonexistent/engine"])


def test_starting_a_child_needs_none_of_the_libraries_that_take_long_to_import() -> None:
    code = f"import sys, llmd.server.engines.engine_starter; print([name for name in {HEAVY} if name in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
