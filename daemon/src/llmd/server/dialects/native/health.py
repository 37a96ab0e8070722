"""Is the process alive, does it accept requests, what is it."""

from __future__ import annotations

from aiohttp import web

from llmd.server.json_response import json_response
from llmd.server.service import Service


async def health(_request: web.Request, _service: Service) -> web.Response:
    """200 as long as the process answers at all."""
    return json_response({"status": "ok"})


async def ready(_request: web.Request, service: Service) -> web.Response:
    """200 where requests are accepted; 503 while draining, while models load, and where none can answer."""
    served = service.models.served
    answering = [model.name for model in served if model.status == "loaded"]
    failed = {model.name: str(model.error) for model in served if model.status == "failed"}
    loading = [model.name for model in served if model.status == "loading"]
    if service.activity.draining:
        status = "draining"
    elif loading:
        status = "loading"
    else:
        status = "failed" if failed and not answering else "ready"
    body = {"status": status, "models": answering, "loading": loading, "failed": failed}
    return json_response(body, status=200 if status == "ready" else 503)


async def version(_request: web.Request, service: Service) -> web.Response:
    """Name and version."""
    return json_response({"name": "llmd", "version": service.version})
