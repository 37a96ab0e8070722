"""Lists models and pulls models, for clients with the right to manage."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from llmd.api.errors import LlmdError
from llmd.registry.names import parse_hub_name
from llmd.registry.stored_model import StoredModel, with_adapter
from llmd.requests.fields import RequestFields
from llmd.server.dialects.native.reply import reply
from llmd.server.http.bodies import read_object
from llmd.server.http.line_stream import LineStream
from llmd.server.models.known_models import described_models
from llmd.server.models.model_table import ModelTable
from llmd.server.models.served_model import ServedModel
from llmd.server.service import Service

FIRST_LINE_S = 1.0


async def models(_request: web.Request, service: Service) -> web.Response:
    """Return every model that a request may name with its state, and every running pull with its steps.

    A derived model has the state of its base, whose engine answers for it.
    """
    served = {model.name: model for model in service.models.served}
    stored = await service.in_thread(_stored, service.models)
    rows = [_row(model, served.get(model.base or model.name)) for model in stored]
    pulls = [
        {"name": str(name), "steps": [msgspec.to_builtins(step) for step in steps]}
        for name, steps in service.pulls.running.items()
    ]
    return reply({"models": rows, "pulls": pulls})


async def pull(request: web.Request, service: Service) -> web.StreamResponse:
    """Pull ``model`` from the hub. Streams a line of JSON for each step, at least two per second.

    Raises:
        BadRequestError: no model is named.
        RequestError: it is not a valid model name.
        ConflictError: the name belongs to something that llmd did not pull.
    """
    fields = RequestFields(await read_object(request))
    name = parse_hub_name(fields.required_text("model"))
    await service.in_thread(service.models.store.pulled_models.check_free, name.local)
    async with LineStream(request, {}, FIRST_LINE_S) as lines:
        async with service.pulls.subscribe(name) as steps:
            async for step in steps:
                await lines.send(msgspec.to_builtins(step))
        await lines.end()
    return lines.response


def _stored(table: ModelTable) -> list[StoredModel]:
    described = described_models(table)
    bases = {model.name: model for model in described}
    adapters = [
        with_adapter(bases[record.base], name, Path(record.adapter))
        for name, record in table.adapters().items()
        if record.base in bases
    ]
    return [*described, *(_derived(model, table) for model in table.store.list_derived()), *adapters]


def _derived(model: StoredModel, table: ModelTable) -> StoredModel:
    """Return a derived model with the name of its base, which may be stored as a path."""
    with contextlib.suppress(LlmdError):  # the base is gone
        return msgspec.structs.replace(model, base=table.locate(model.base, allow_path=True)[0])
    return model


def _row(stored: StoredModel, served: ServedModel | None) -> dict[str, Any]:
    row: dict[str, Any] = msgspec.to_builtins(stored, enc_hook=str)
    row["state"] = served.status if served else "unloaded"
    return row | {"loading": msgspec.to_builtins(served.progress if served else None)}
