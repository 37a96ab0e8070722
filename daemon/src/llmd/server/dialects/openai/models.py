"""``GET /v1/models``: entries for clients of OpenAI, vLLM, llama.cpp and Anthropic."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from llmd.api.errors import NotFoundError
from llmd.registry.derived import DerivedModels
from llmd.registry.stored_model import StoredModel
from llmd.server.http.json_response import json_response
from llmd.server.models.model_table import matching
from llmd.server.models.served_model import ServedModel
from llmd.server.service import Service

OWNER = "llmd"


async def list_models(_request: web.Request, service: Service) -> web.Response:
    """List the loaded models, then the others in the store, with their aliases."""
    data = await entries(service)
    body = {
        "object": "list",
        "data": data,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
        "has_more": False,
    }
    return json_response(body)


async def show_model(request: web.Request, service: Service) -> web.Response:
    """Return one model by any name that a request may use. The name may contain slashes, encoded or not.

    Raises:
        NotFoundError: no model has that name.
    """
    name = request.path.partition("/models/")[2].strip("/")
    data = {entry["id"]: entry for entry in await entries(service)}
    found = matching(name, {}, data)
    if len(found) == 1:
        return json_response(data[found[0]])
    known = ", ".join(data) or "none"
    raise NotFoundError(f"there is no model {name}; the models are {known}", hint="see GET /v1/models")


async def entries(service: Service) -> list[dict[str, Any]]:
    """Return the entries of all models, loaded ones first."""
    table = service.models
    served = {name: model for model in table.served for name in table.names_of(model.name)}
    stored = await service.in_thread(table.store.list)
    models = [
        *(_served_entry(name, model) for name, model in served.items()),
        *(
            _stored_entry(name, model)
            for model in stored
            if model.name not in served and not model.reason
            for name in table.names_of(model.name)
        ),
    ]
    return [*models, *await service.in_thread(_derived_entries, table.store.derived, models)]


def _derived_entries(derived: DerivedModels, models: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return entries of derived models: their base's with another name. Those without a base are left out."""
    bases = {entry["id"]: entry for entry in models}
    found = [known for name in derived.names() if (known := derived.find(name)) is not None]
    return [
        {**bases[model.base], "id": name, "parent": model.base, "display_name": name}
        for name, model in found
        if model.base in bases
    ]


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
