"""``/props`` and ``/slots``: properties and load of a model."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from llmd.chat.model_text import ModelText
from llmd.chat.templates.template_files import ChatTemplate
from llmd.requests.fields import RequestFields
from llmd.server.dialects.llamacpp.fields import read_settings
from llmd.server.dialects.llamacpp.generation_settings import generation_settings
from llmd.server.errors import UnavailableError
from llmd.server.http.guards import peer_of
from llmd.server.http.json_response import json_response
from llmd.server.service import Service


async def props(request: web.Request, service: Service) -> web.Response:
    """Return the properties of a model. ``?model=`` names it if several are loaded."""
    asked = request.query.get("model")
    model = await service.models.resolve(asked, allow_path=peer_of(request).is_unix)
    ready = await model.ready()
    named = _template_of(ready.text)
    body = {
        "default_generation_settings": {"params": _default_settings(ready.text), "n_ctx": ready.window},
        "total_slots": model.supervisor.slots,
        "model_alias": asked or model.name,
        "model_path": str(model.directory),
        "modalities": {"vision": False, "audio": False},
        "chat_template": named.sources.get("default", "") if named else "",
        "bos_token": _token(named, "bos_token"),
        "eos_token": _token(named, "eos_token"),
        "build_info": f"llmd {service.version}",
        "is_sleeping": False,
    }
    return json_response(body)


async def slots(request: web.Request, service: Service) -> web.Response:
    """Return an entry for each sequence that can run at once. Prompts are not shown.

    Raises:
        UnavailableError: ``?fail_on_no_slot=1`` was given and all slots are in use.
    """
    model = await service.models.resolve(request.query.get("model"), allow_path=peer_of(request).is_unix)
    ready = await model.ready()
    report = await model.supervisor.report()
    running, total = (report.running if report else 0), model.supervisor.slots
    if request.query.get("fail_on_no_slot") and running >= total:
        raise UnavailableError(
            "no slot is free",
            code="no_slot",
            hint="requests wait in a queue until a slot is free",
            retry_after_s=1,
        )
    return json_response([_slot(place, ready.window, busy=place < running) for place in range(total)])


def _slot(place: int, window: int, *, busy: bool) -> dict[str, Any]:
    return {"id": place, "n_ctx": window, "speculative": False, "is_processing": busy}


def _default_settings(text: ModelText) -> dict[str, Any]:
    """Return the settings of a request without any fields."""
    settings = read_settings(RequestFields({}))
    return generation_settings(settings, settings.choice(text.tokenizer, text.defaults), text.defaults)


def _template_of(text: ModelText) -> ChatTemplate | None:
    return text.template if isinstance(text.template, ChatTemplate) else None


def _token(template: ChatTemplate | None, name: str) -> str:
    found = template.variables.get(name, "") if template else ""
    return found if isinstance(found, str) else ""
