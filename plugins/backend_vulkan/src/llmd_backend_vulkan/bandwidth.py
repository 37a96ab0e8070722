"""How fast a device reads its memory."""

from __future__ import annotations

import time

from llmd_backend_vulkan.commands import WORD, Dispatch, Shader
from llmd_backend_vulkan.memory import Arena

_MOST_WORDS = 64 << 20
_READS = 8
_GROUPS = 2048
_SHARE_OF_FREE = 4


def read_rate(arena: Arena, budget_s: float, free_bytes: int) -> float:
    """Return the bytes per second at which the device reads memory, measured for about ``budget_s`` seconds.

    256 MiB are read, or as much as a buffer can hold and is free: more than caches hold.
    """
    runtime = arena.runtime
    num_words = max(min(_MOST_WORDS, runtime.most_words, free_bytes // WORD // _SHARE_OF_FREE) // 64 * 64, 64)
    source, target = arena.take(num_words), runtime.host(4)
    reading = Dispatch(
        Shader("read_memory"), (source.buffer, target), ((source.at + num_words) // 4,), (_GROUPS, 1, 1)
    )
    recording = runtime.record([[reading]] * _READS)
    best, end = 0.0, time.monotonic() + budget_s
    while not best or time.monotonic() < end:
        started = time.monotonic()
        recording.run(60.0, "read its memory")
        best = max(best, _READS * WORD * (source.at + num_words) / (time.monotonic() - started))
    runtime.free(target)
    return best
