"""The child's side of `llmd.process.worker`: answer requests from standard input until it ends."""

from __future__ import annotations

import resource
import signal
import sys
from collections.abc import Callable
from typing import IO

from llmd.process.frames import frame, read_payload

_ORPHAN_LIMIT_S = 60
"""The parent kills a request that takes too long.
If the parent has died, this process ends after this many seconds.
"""


def serve(answer: Callable[[bytes], bytes], *, memory_bytes: int, out_of_memory: bytes | None = None) -> None:
    """Answer each request with what ``answer`` returns for its payload.

    ``memory_bytes`` limits the address space. If a request exceeds it, the process sends ``out_of_memory``,
    if given, and ends.
    """
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    requests, replies = sys.stdin.buffer, sys.stdout.buffer
    last_reply = None if out_of_memory is None else frame(out_of_memory)
    _send(replies, frame(b""))  # ready
    while (payload := read_payload(requests)) is not None:
        signal.alarm(_ORPHAN_LIMIT_S)
        try:
            reply = frame(answer(payload))
        except MemoryError:
            if last_reply is None:
                raise
            _send(replies, last_reply)
            return
        signal.alarm(0)
        _send(replies, reply)


def _send(replies: IO[bytes], framed: bytes) -> None:
    replies.write(framed)
    replies.flush()
