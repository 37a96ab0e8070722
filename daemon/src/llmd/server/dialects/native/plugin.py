"""Registers the dialect."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api.hooks import hookimpl
from llmd.api.plugins import Dialect, Route

LLMD_API = 2
LINES = ("application/x-ndjson",)
EVENTS = ("text/event-stream",)
LOG_QUERY = ("lines", "level", "follow")
PAGE_TYPES = ("text/html", "text/javascript", "text/css", "image/svg+xml")


@hookimpl
def llmd_dialects() -> Sequence[Dialect]:
    return [Dialect("native", _routes)]


def _routes() -> Sequence[Route]:
    from llmd.server.dialects.native import (
        admin,
        bodies,
        cancel,
        devices,
        events,
        health,
        kv,
        load,
        logs,
        models,
        openapi,
        page,
        requests,
    )

    return [
        Route("GET", "/", page.root, probe=True, right="none", replies=("text/html", "text/plain")),
        Route("GET", "/page/{id}", page.file, right="none", replies=PAGE_TYPES),
        *(Route("GET", path, health.health, True, "none") for path in ("/health", "/healthz", "/v1/health")),
        *(Route("GET", path, health.ready, True, "none") for path in ("/ready", "/readyz")),
        Route("GET", "/openapi.json", openapi.openapi),
        Route("GET", "/version", health.version),
        Route("GET", "/metrics", events.metrics, probe=True, replies=("text/plain",)),
        Route("GET", "/llmd/events", events.events, True, "manage", replies=EVENTS),
        Route("GET", "/llmd/kv", kv.kv, True, "manage", query=("model",)),
        Route("GET", "/llmd/logs", logs.logs, True, "manage", replies=(*LINES, *EVENTS), query=LOG_QUERY),
        Route("GET", "/llmd/plan", devices.plan, probe=True, right="manage"),
        Route("GET", "/llmd/ps", admin.ps, probe=True, right="manage"),
        Route("GET", "/llmd/requests", requests.requests, probe=True, right="manage"),
        Route("POST", "/llmd/stop", admin.stop, right="manage", body=bodies.STOP),
        Route("POST", "/llmd/cancel", cancel.cancel, right="manage", body=bodies.CANCEL, in_shutdown=True),
        Route("POST", "/llmd/reload", admin.reload, right="manage"),
        Route("GET", "/llmd/models", models.models, right="manage"),
        Route("POST", "/llmd/load", load.load, right="manage", body=bodies.LOAD, replies=LINES),
        Route("POST", "/llmd/pull", models.pull, right="manage", body=bodies.PULL, replies=LINES),
        Route("GET", "/llmd/plugins", admin.plugins, right="manage"),
        Route("GET", "/llmd/devices", devices.devices, probe=True, right="manage"),
    ]
