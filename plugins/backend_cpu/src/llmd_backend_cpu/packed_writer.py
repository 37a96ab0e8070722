"""Keeping packed weights on disk, beside the steps that use them."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import weakref

from llmd_backend_cpu import _ext

log = logging.getLogger(__name__)

_DELAY_S = 3.0
"""How long writing waits for the first answer, to which it would cost memory bandwidth at any priority."""
_LEAST_END_S = 5.0
"""How long weights that are closed go on writing, at least."""
_LOWEST_PRIORITY = 19


class PackedWriter:
    """A thread that writes the panels of weights to a file, in the time that steps leave, and ends with it.

    ``packing_s`` is how long packing took, which the next load is spared. A disk that does not take them is only logged.
    """

    def __init__(self, native: _ext.Weights, path: str, packing_s: float) -> None:
        self._native = native
        self._longest_end_s = max(_LEAST_END_S, packing_s)
        self._wanted = threading.Event()
        self._path = path
        # While it waits, the thread keeps nothing alive: the interpreter may end meanwhile.
        arguments = (weakref.ref(self), self._wanted)
        self._thread = threading.Thread(target=_write, args=arguments, name="packed-writer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Wait for the writing, but no longer than packing took, then end it: no file is left."""
        self._wanted.set()
        self._thread.join(self._longest_end_s)
        self._native.stop_writing()
        self.wait()

    def wait(self) -> None:
        """Begin now, and return once the file is there, or given up."""
        self._wanted.set()
        self._thread.join()

    def write(self) -> None:
        """Write the file; for the thread."""
        # The first answers come before the file. Linux has a priority for each thread; others may have none.
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOWEST_PRIORITY)
        try:
            self._native.write_packed(self._path)
        except (OSError, RuntimeError) as error:
            log.warning("packed_weights_not_kept", extra={"reason": str(error)})


def _write(writer: weakref.ref[PackedWriter], wanted: threading.Event) -> None:
    """Write the file of a writer that is still there when it is wanted, or after a while."""
    wanted.wait(_DELAY_S)
    found = writer()
    if found is not None:
        found.write()
