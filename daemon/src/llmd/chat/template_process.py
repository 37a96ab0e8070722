"""The front's end of the template process: start it, exchange frames before a deadline, end it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import msgspec

import llmd
from llmd.chat.template_frames import (
    HEADER_BYTES,
    MAX_FRAME_BYTES,
    Failed,
    Ready,
    Rendered,
    unpack_reply,
)

# Starting takes 0.1 s; a machine that is busy with inference may take far longer.
STARTUP_LIMIT_S = 30.0


class WorkerLostError(Exception):
    """The process ended, or sent what is no reply."""


class TemplateProcess:
    """One process with a memory limit. Not thread-safe. After any exception it must be ended."""

    def __init__(self, *, memory_bytes: int) -> None:
        """Raises `WorkerLostError` if the process does not start."""
        self._socket, theirs = socket.socketpair()
        try:
            self._process = _start(theirs, memory_bytes)
        except OSError as exc:
            self._socket.close()
            raise WorkerLostError(f"the template process does not start: {exc}") from exc
        finally:
            theirs.close()
        try:
            self._receive(time.monotonic() + STARTUP_LIMIT_S)
        except TimeoutError as exc:
            self.end()
            raise WorkerLostError(f"the template process was not ready after {STARTUP_LIMIT_S:g} s") from exc
        except BaseException:
            self.end()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def render(self, frame: bytes, *, limit_s: float) -> Rendered | Failed:
        """Send a packed `RenderJob` and wait for its answer.

        Raises:
            TimeoutError: there is no whole answer within ``limit_s``.
            WorkerLostError: the process ended without one.
        """
        deadline = time.monotonic() + limit_s
        try:
            self._socket.settimeout(limit_s)
            self._socket.sendall(frame)
        except (BrokenPipeError, ConnectionResetError) as exc:
            raise WorkerLostError("the template process has ended") from exc
        reply = self._receive(deadline)
        if isinstance(reply, Ready):
            raise WorkerLostError("the template process started twice")
        return reply

    def end(self) -> None:
        """Kill the process and wait for its end."""
        self._process.kill()
        self._process.wait()
        self._socket.close()

    def _receive(self, deadline: float) -> Ready | Rendered | Failed:
        size = int.from_bytes(self._receive_exactly(HEADER_BYTES, deadline), "little")
        if size > MAX_FRAME_BYTES:
            return Failed("memory", f"the rendered prompt has {size} bytes, more than {MAX_FRAME_BYTES}")
        payload = self._receive_exactly(size, deadline)
        try:
            return unpack_reply(payload)
        except msgspec.DecodeError as exc:
            raise WorkerLostError("the template process sent what is no answer") from exc

    def _receive_exactly(self, size: int, deadline: float) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                raise TimeoutError
            self._socket.settimeout(remaining_s)
            try:
                part = self._socket.recv(min(size - len(parts), 1 << 20))
            except ConnectionResetError:
                part = b""
            if not part:
                raise WorkerLostError("the template process ended without an answer")
            parts += part
        return bytes(parts)


def _start(pipe: socket.socket, memory_bytes: int) -> subprocess.Popen[bytes]:
    # An empty environment: a template that broke out would find no keys there. -P: nothing in the working directory is
    # imported.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "llmd.chat.template_worker", str(memory_bytes)],
        stdin=pipe.fileno(),
        stdout=pipe.fileno(),
        stderr=subprocess.DEVNULL,
        env={"PYTHONPATH": os.pathsep.join(str(Path(place).parent) for place in llmd.__path__)},
    )
