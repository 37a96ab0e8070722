"""Requests without a prompt, which load or unload a model."""

from __future__ import annotations

import time
from typing import Any

from aiohttp import web

from llmd.server.dialects.ollama.lines import Content
from llmd.server.dialects.ollama.names import NotFoundText, missing_as, resolve
from llmd.server.dialects.ollama.request import OllamaRequest
from llmd.server.dialects.ollama.times import rfc3339
from llmd.server.http.guards import peer_of
from llmd.server.http.json_response import json_response
from llmd.server.models.known_models import known_model
from llmd.server.request_record import current_record
from llmd.server.service import Service


async def load_or_unload(
    request: web.Request, service: Service, asked: OllamaRequest, content: Content
) -> web.Response:
    """Wait until the model is loaded. With ``keep_alive`` 0, unload it once no request uses it."""
    allow_path = peer_of(request).is_unix
    if asked.keep_alive_s == 0:
        with missing_as(NotFoundText.USED, asked.name):
            known = await service.in_thread(known_model, service.models, asked.name, allow_path=allow_path)
        for served in service.models.served:
            if served.name == known.stored.name:
                with served.in_use(0):
                    pass
        return json_response(_line(asked.name, content, "unload"))
    async with current_record().in_time():
        model = await resolve(request, service, asked.name)
        with model.in_use(asked.keep_alive_s):
            await model.ready()
    return json_response(_line(asked.name, content, "load"))


def _line(name: str, content: Content, reason: str) -> dict[str, Any]:
    return {
        "model": name,
        "created_at": rfc3339(time.time_ns()),
        **content("", "", []),
        "done": True,
        "done_reason": reason,
    }
