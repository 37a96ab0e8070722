"""A process for work that may run away: start it, exchange frames before a deadline, end it.

A frame is a 4-byte little-endian length and its payload. The process sends one when it is ready, then one for each
that it gets.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import llmd

HEADER_BYTES = 4
# Starting takes 0.1 s; a machine that is busy with inference may take far longer.
STARTUP_LIMIT_S = 30.0
PATIENCE = 15
TICK_S = 0.02


class HelperLostError(Exception):
    """The process ended, or sent what is no reply."""


class ReplyTooLongError(Exception):
    """The reply would be longer than one may be."""

    def __init__(self, num_bytes: int, most: int) -> None:
        super().__init__(f"it has {num_bytes} bytes, more than {most}")


class HelperProcess:
    """``python -m MODULE MEMORY_BYTES``, with frames on its standard input and output.

    Not thread-safe. After any exception it must be ended.
    """

    def __init__(self, module: str, *, memory_bytes: int, max_reply_bytes: int) -> None:
        """Raises `HelperLostError` if the process does not start."""
        self._max_reply_bytes = max_reply_bytes
        self._socket, theirs = socket.socketpair()
        try:
            self._process = _start(module, theirs, memory_bytes)
        except OSError as exc:
            self._socket.close()
            raise HelperLostError(f"it does not start: {exc}") from exc
        finally:
            theirs.close()
        try:
            ready_by = time.monotonic() + STARTUP_LIMIT_S
            self.ready = self._receive(lambda: ready_by - time.monotonic())
        except TimeoutError as exc:
            self.end()
            raise HelperLostError(f"it was not ready after {STARTUP_LIMIT_S:g} s") from exc
        except BaseException:
            self.end()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, frame: bytes, *, limit_s: float) -> bytes:
        """Send a frame and wait for the payload of the reply.

        ``limit_s`` is processor time: where others keep the machine busy, the same work takes longer.

        Raises:
            TimeoutError: there is no whole reply within ``limit_s``, nor in `PATIENCE` times that.
            HelperLostError: the process ended without one.
            ReplyTooLongError: the reply is longer than one may be.
        """
        allowance = _Allowance(self.pid, limit_s)
        try:
            self._socket.settimeout(limit_s)
            self._socket.sendall(frame)
        except (BrokenPipeError, ConnectionResetError) as exc:
            raise HelperLostError("it has ended") from exc
        return self._receive(allowance.remaining_s)

    def end(self) -> None:
        """Kill the process and wait for its end."""
        self._process.kill()
        self._process.wait()
        self._socket.close()

    def _receive(self, remaining: Callable[[], float]) -> bytes:
        size = int.from_bytes(self._receive_exactly(HEADER_BYTES, remaining), "little")
        if size > self._max_reply_bytes:
            raise ReplyTooLongError(size, self._max_reply_bytes)
        return self._receive_exactly(size, remaining)

    def _receive_exactly(self, size: int, remaining: Callable[[], float]) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            remaining_s = remaining()
            if remaining_s <= 0:
                raise TimeoutError
            self._socket.settimeout(remaining_s)
            try:
                part = self._socket.recv(min(size - len(parts), 1 << 20))
            except TimeoutError:
                continue
            except ConnectionResetError:
                part = b""
            if not part:
                raise HelperLostError("it ended without an answer")
            parts += part
        return bytes(parts)


class _Allowance:
    """How long a process may still work, in seconds of its own processor time."""

    def __init__(self, pid: int, limit_s: float) -> None:
        self._pid = pid
        self._limit_s = limit_s
        self._begun = time.monotonic()
        self._used_s = processor_s(pid)

    def remaining_s(self) -> float:
        """Not above 0 once the time is used up."""
        passed_s = time.monotonic() - self._begun
        if passed_s < self._limit_s or passed_s >= PATIENCE * self._limit_s:
            return self._limit_s - passed_s
        now_s = processor_s(self._pid)
        if now_s is None or self._used_s is None:
            return self._limit_s - passed_s
        left_s = self._limit_s - (now_s - self._used_s)
        return max(left_s, TICK_S) if left_s > 0 else left_s


def processor_s(pid: int) -> float | None:
    """The processor time that a process has used; None where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def framed(payload: bytes) -> bytes:
    """A payload as a frame."""
    return len(payload).to_bytes(HEADER_BYTES, "little") + payload


def _start(module: str, pipe: socket.socket, memory_bytes: int) -> subprocess.Popen[bytes]:
    # An empty environment: what broke out of its sandbox would find no keys there. -P: nothing in the working directory
    # is imported.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, str(memory_bytes)],
        stdin=pipe.fileno(),
        stdout=pipe.fileno(),
        stderr=subprocess.DEVNULL,
        env={"PYTHONPATH": os.pathsep.join(str(Path(place).parent) for place in llmd.__path__)},
    )
