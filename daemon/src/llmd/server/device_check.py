"""Measures the devices once the daemon is ready. Nothing waits for it."""

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

    It is a daemon thread because it waits for child processes: a shutdown must not wait with it. The child ends with this
    process.
    """

    def __init__(self, benchmarks: Benchmarks, devices: Sequence[DeviceState]) -> None:
        self._stopped = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(benchmarks, devices), name="device check", daemon=True
        )
        self._thread.start()

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for the end; whether it has come."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def stop(self) -> None:
        """Begin with no other device."""
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
