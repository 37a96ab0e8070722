"""Health, readiness and version of the daemon."""

from __future__ import annotations

from aiohttp import web

from llmd.server.http.json_response import json_response
from llmd.server.service import Service


async def health(_request: web.Request, _service: Service) -> web.Response:
    """Return 200 as long as the process answers at all."""
    return json_response({"status": "ok"})


async def ready(_request: web.Request, service: Service) -> web.Response:
    """Return 200 if requests are accepted, with the models that can answer.

    Return 503 while draining, before the first models are loaded, and if every model has failed. A model
    that is loaded later, or whose engine restarts, changes nothing: its requests wait.
    """
    served = service.models.served
    failed = {model.name: str(model.error) for model in served if model.status == "failed"}
    body = {
        "status": _status(service, num_failed=len(failed)),
        "models": [model.name for model in served if model.status == "loaded"],
        "loading": [model.name for model in served if model.status == "loading"],
        "failed": failed,
    }
    return json_response(body, status=200 if body["status"] == "ready" else 503)


def _status(service: Service, num_failed: int) -> str:
    if service.activity.draining:
        return "draining"
    if not service.is_serving:
        return "loading"
    return "failed" if 0 < num_failed == len(service.models.served) else "ready"


async def version(_request: web.Request, service: Service) -> web.Response:
    """Return the daemon's version."""
    return json_response({"name": "llmd", "version": service.version})
