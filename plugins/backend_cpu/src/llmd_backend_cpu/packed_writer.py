"""Writes packed weights to disk while steps use them."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import weakref

from llmd_backend_cpu import _ext

log = logging.getLogger(__name__)

_DELAY_S = 3.0
"""Delay before writing, for the first answer: at any priority, writing takes memory bandwidth from it."""
_LEAST_END_S = 5.0
"""How long closed weights may go on writing, at least."""
_LOWEST_PRIORITY = 19


class PackedWriter:
    """A low-priority thread that writes packed weights to a file, then ends.

    ``packing_s`` is the time that packing took, which the next load saves. Disk errors are only logged.
    """

    def __init__(self, native: _ext.Weights, path: str, packing_s: float) -> None:
        self._native = native
        self._longest_end_s = max(_LEAST_END_S, packing_s)
        self._wanted = threading.Event()
        self._path = path
        # A weak reference: while the thread waits, it keeps nothing alive, and the interpreter may exit.
        arguments = (weakref.ref(self), self._wanted)
        self._thread = threading.Thread(target=_write, args=arguments, name="packed-writer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Wait for the write as long as packing took, at least 5 s; then cancel it and leave no file."""
        self._wanted.set()
        self._thread.join(self._longest_end_s)
        self._native.stop_writing()
        self.wait()

    def wait(self) -> None:
        """Write without further delay; return once the file exists or writing has failed."""
        self._wanted.set()
        self._thread.join()

    def write(self) -> None:
        """Write the file. Called by the thread."""
        # Answers come before the file. Linux has a priority for each thread; other systems may not.
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOWEST_PRIORITY)
        try:
            self._native.write_packed(self._path)
        except (OSError, RuntimeError) as error:
            log.warning("packed_weights_not_kept", extra={"reason": str(error)})


def _write(writer: weakref.ref[PackedWriter], wanted: threading.Event) -> None:
    """Write the file when it is wanted or after a delay, if the writer still exists."""
    wanted.wait(_DELAY_S)
    found = writer()
    if found is not None:
        found.write()
