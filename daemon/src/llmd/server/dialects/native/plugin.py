"""Registers the dialect."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api.hooks import hookimpl
from llmd.api.plugins import Dialect, Route

LLMD_API = 2


@hookimpl
def llmd_dialects() -> Sequence[Dialect]:
    return [Dialect("native", _routes)]


def _routes() -> Sequence[Route]:
    from llmd.server.dialects.native import admin, cancel, devices, events, health, kv, load, logs, models

    return [
        *(Route("GET", path, health.health, True, "none") for path in ("/health", "/healthz", "/v1/health")),
        *(Route("GET", path, health.ready, True, "none") for path in ("/ready", "/readyz")),
        Route("GET", "/version", health.version),
        Route("GET", "/metrics", events.metrics, probe=True),
        Route("GET", "/llmd/events", events.events, probe=True, right="manage"),
        Route("GET", "/llmd/kv", kv.kv, probe=True, right="manage"),
        Route("GET", "/llmd/logs", logs.logs, probe=True, right="manage"),
        Route("GET", "/llmd/plan", devices.plan, probe=True, right="manage"),
        Route("GET", "/llmd/ps", admin.ps, probe=True, right="manage"),
        Route("POST", "/llmd/stop", admin.stop, right="manage"),
        Route("POST", "/llmd/cancel", cancel.cancel, right="manage"),
        Route("POST", "/llmd/reload", admin.reload, right="manage"),
        Route("GET", "/llmd/models", models.models, right="manage"),
        Route("POST", "/llmd/load", load.load, right="manage"),
        Route("POST", "/llmd/pull", models.pull, right="manage"),
        Route("GET", "/llmd/plugins", admin.plugins, right="manage"),
        Route("GET", "/llmd/devices", devices.devices, probe=True, right="manage"),
    ]
