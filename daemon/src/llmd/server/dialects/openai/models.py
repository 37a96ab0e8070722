"""``GET /v1/models``: entries for clients of OpenAI, vLLM, llama.cpp and Anthropic."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from llmd.api.errors import NotFoundError
from llmd.registry.name_matching import matching
from llmd.registry.stored_model import StoredModel
from llmd.server.http.json_response import json_response
from llmd.server.models.adapter_model import AdapterModel
from llmd.server.models.known_models import KnownModel, known_models
from llmd.server.models.served_model import ServedModel
from llmd.server.request_record import current_record
from llmd.server.service import Service

OWNER = "llmd"


async def list_models(_request: web.Request, service: Service) -> web.Response:
    """List the loaded models, then the others that a request may name, with their aliases."""
    data = [_shown(entry) for entry in await entries(service)]
    body = {
        "object": "list",
        "data": data,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
        "has_more": False,
    }
    return json_response(body)


async def show_model(request: web.Request, service: Service) -> web.Response:
    """Return one model by any name that a request may use, or by its path. Slashes may be encoded or not.

    Raises:
        NotFoundError: no model has that name.
    """
    name = request.path.partition("/models/")[2].strip("/")
    data = {entry["id"]: entry for entry in await entries(service)}
    at_path = [entry["id"] for entry in data.values() if entry["root"].strip("/") == name]
    found = matching(name, {}, data) or at_path[:1]
    if len(found) == 1:
        return json_response(_shown(data[found[0]]))
    known = ", ".join(data) or "none"
    raise NotFoundError(f"there is no model {name}; the models are {known}", hint="see GET /v1/models")


def _shown(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry as its sender may see it: without the path, if it may not manage the daemon."""
    return entry if current_record().may_manage else entry | {"root": entry["id"]}


async def entries(service: Service) -> list[dict[str, Any]]:
    """Return the entries of all models that a request may name: loaded ones first, derived ones last."""
    table = service.models
    served = {model.name: model for model in table.served}
    known = await service.in_thread(known_models, table)
    derived = [model for model in known if model.record is not None]
    return [
        *(_served_entry(name, model) for model in served.values() for name in table.names_of(model.name)),
        *(
            _stored_entry(model.name, model.stored)
            for model in known
            if model.record is None and model.stored.name not in served
        ),
        *(_derived_entry(model, served.get(model.stored.name)) for model in derived),
    ]


def _derived_entry(model: KnownModel, base: ServedModel | None) -> dict[str, Any]:
    """Return the entry of a derived model: that of its base with another name."""
    name = model.name
    entry = _served_entry(name, base) if base is not None else _stored_entry(name, model.stored)
    root = {"root": model.record.adapter} if isinstance(model.record, AdapterModel) else {}
    return entry | {"parent": model.stored.name} | root


def _served_entry(name: str, model: ServedModel) -> dict[str, Any]:
    loaded = model.loaded
    window = loaded.window if loaded else None
    meta = {"n_ctx_train": loaded.max_context_len, "n_params": loaded.num_parameters} if loaded else {}
    size = {"size": sum(stage.weight_bytes for stage in loaded.stages)} if loaded else {}
    return _entry(name, str(model.directory), model.created, window, model.status) | {"meta": meta | size}


def _stored_entry(name: str, model: StoredModel) -> dict[str, Any]:
    meta = {"n_ctx_train": model.context_len, "n_params": model.num_parameters, "size": model.size_bytes}
    created = int(model.modified.timestamp())
    entry = _entry(name, str(model.directory), created, model.context_len, "unloaded")
    return entry | {"meta": meta}


def _entry(name: str, root: str, created: int, window: int | None, status: str) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "created": created,
        "owned_by": OWNER,
        "root": root,
        "parent": None,
        "max_model_len": window,
        "permission": [],
        "status": status,
        "type": "model",
        "display_name": name,
        "created_at": datetime.fromtimestamp(created, UTC).isoformat().replace("+00:00", "Z"),
        "max_input_tokens": window,
        "max_tokens": window,
        "lifecycle": "active",
    }
