"""A child process for work that may not terminate:
it answers one request at a time, within time and memory limits.

The child's side is `llmd.process.serve`.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import llmd
from llmd.process.frames import HEADER_BYTES, frame, payload_length
from llmd.process.limits import TimeLimit, TimeSpent, processor_seconds

STARTUP_LIMIT_S = 30.0
"""A start takes 0.1 s, but far longer on a machine that is busy with inference."""
PATIENCE = 15
"""A request times out after this many times its processor-time limit in wall time,
however little the child computed.
"""


class WorkerLostError(Exception):
    """The process ended, or sent something that is not a reply."""


class ReplyTooLongError(Exception):
    """The reply is longer than allowed."""

    def __init__(self, num_bytes: int, most: int) -> None:
        super().__init__(f"it has {num_bytes} bytes, more than {most}")


class Worker:
    """``python -m MODULE MEMORY_BYTES``, with frames on its standard input and output.

    Not thread-safe. Call `end` after any exception.
    """

    def __init__(self, module: str, *, memory_bytes: int, max_reply_bytes: int) -> None:
        """Start the process and wait until it is ready.

        Raises:
            WorkerLostError: the process does not start.
        """
        self._max_reply_bytes = max_reply_bytes
        self._socket, theirs = socket.socketpair()
        try:
            self._process = start_python(module, [str(memory_bytes)], pipe=theirs)
        except OSError as exc:
            self._socket.close()
            raise WorkerLostError(f"it does not start: {exc}") from exc
        finally:
            theirs.close()
        try:
            ready_by = time.monotonic() + STARTUP_LIMIT_S
            ready = self._receive(lambda: ready_by - time.monotonic())
        except TimeoutError as exc:
            self.end()
            raise WorkerLostError(f"it was not ready after {STARTUP_LIMIT_S:g} s") from exc
        except BaseException:
            self.end()
            raise
        if ready:
            self.end()
            raise WorkerLostError("its first message was not the one that says it is ready")

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, payload: bytes, *, limit_s: float) -> bytes:
        """Send a request and return the payload of its reply.

        ``limit_s`` is processor time, so that requests do not fail only because the machine is busy.

        Raises:
            TimeoutError: no complete reply arrived within ``limit_s`` of processor time, or `PATIENCE` times
                that in wall time.
            WorkerLostError: the process ended without a reply.
            ReplyTooLongError: the reply is longer than allowed.
        """
        allowance = _Allowance(self.pid, TimeLimit(limit_s, PATIENCE * limit_s))
        try:
            self._socket.settimeout(limit_s)
            self._socket.sendall(frame(payload))
        except (BrokenPipeError, ConnectionResetError) as exc:
            raise WorkerLostError("it has ended") from exc
        return self._receive(allowance.remaining_s)

    def end(self) -> None:
        """Kill the process and wait until it has ended."""
        self._process.kill()
        self._process.wait()
        self._socket.close()

    def _receive(self, remaining: Callable[[], float]) -> bytes:
        size = payload_length(self._receive_exactly(HEADER_BYTES, remaining))
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
                raise WorkerLostError("it ended without an answer")
            parts += part
        return bytes(parts)


class _Allowance:
    """The time that a process has left for one request."""

    def __init__(self, pid: int, limit: TimeLimit) -> None:
        self._pid = pid
        self._limit = limit
        self._begun = time.monotonic()
        self._used_s = processor_seconds(pid)

    def remaining_s(self) -> float:
        """Return how long to wait before checking again; 0 or less once the time is used up."""
        wall_s = time.monotonic() - self._begun
        used_s = processor_seconds(self._pid)
        # If the system does not report processor time, use wall time.
        processor_s = wall_s if used_s is None or self._used_s is None else used_s - self._used_s
        spent = TimeSpent(processor_s, wall_s)
        return 0.0 if self._limit.is_reached(spent) else self._limit.wait_s(spent)


def start_python(
    module: str,
    arguments: Sequence[str],
    *,
    pipe: socket.socket | None = None,
    descriptors: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start ``python -m MODULE ARGUMENTS`` with no environment variables except PYTHONPATH.

    ``pipe`` becomes its standard input and output, and its standard error is discarded; without ``pipe`` it
    has no input and shares our standard output and error. It inherits ``descriptors``.

    Raises:
        OSError: the process cannot be started.
    """
    # No environment, so that code that escapes its sandbox finds no API keys there.
    # -P: do not import from the working directory.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, *arguments],
        stdin=subprocess.DEVNULL if pipe is None else pipe.fileno(),
        stdout=None if pipe is None else pipe.fileno(),
        stderr=None if pipe is None else subprocess.DEVNULL,
        pass_fds=descriptors,
        env={"PYTHONPATH": os.pathsep.join(str(Path(place).parent) for place in llmd.__path__)},
    )
