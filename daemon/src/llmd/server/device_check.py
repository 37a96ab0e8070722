"""Measures the devices in the background once the daemon is ready."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from llmd.api.errors import PluginError
from llmd.host.benchmarks import Benchmarks
from llmd.host.devices import DeviceState

logger = logging.getLogger(__name__)


class DeviceCheck:
    """A thread that measures one device after the other.

    It is a daemon thread because it waits for child processes, and a shutdown must not wait for them. The
    child ends with this process.
    """

    def __init__(self, benchmarks: Benchmarks, devices: Sequence[DeviceState]) -> None:
        self._stopped = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(benchmarks, devices), name="device check", daemon=True
        )
        self._thread.start()

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for the thread to end; return whether it has ended."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def stop(self) -> None:
        """Stop after the current device."""
        self._stopped.set()

    def _run(self, benchmarks: Benchmarks, devices: Sequence[DeviceState]) -> None:
        for device in devices:
            if self._stopped.is_set():
                return
            if not device.ok:
                continue
            try:
                benchmarks.measure(device)
            except PluginError as error:
                fields = {"device": device.info.name, "reason": str(error)}
                logger.warning("device_not_measured", extra=fields)
