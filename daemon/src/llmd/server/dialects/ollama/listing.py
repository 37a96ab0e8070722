"""``/api/tags`` lists the models, ``/api/ps`` the loaded ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from aiohttp import web

from llmd.api.device import HOST_MEMORY
from llmd.api.messages import Loaded
from llmd.chat.capabilities import capability_names, read_capabilities
from llmd.registry.stored_model import describe
from llmd.server.dialects.ollama.description import describe_model, digest, parent_of
from llmd.server.dialects.ollama.times import rfc3339_of
from llmd.server.http.json_response import json_response
from llmd.server.models.known_models import KnownModel, known_models
from llmd.server.models.model_table import ModelTable
from llmd.server.models.served_model import ServedModel
from llmd.server.service import Service

# The date that Ollama returns for a model that stays loaded.
FOR_EVER = datetime(2318, 1, 1, tzinfo=UTC)


async def tags(_request: web.Request, service: Service) -> web.Response:
    """List every usable model."""
    return json_response({"models": await service.in_thread(_tags, service.models)})


async def ps(_request: web.Request, service: Service) -> web.Response:
    """List the loaded models with the memory that they use."""
    loaded = [(model, model.loaded) for model in service.models.served if model.status != "failed"]
    rows = [await service.in_thread(_running, model, known) for model, known in loaded if known is not None]
    return json_response({"models": rows})


def _tags(table: ModelTable) -> list[dict[str, Any]]:
    return [_entry(model) for model in known_models(table)]


def _entry(model: KnownModel) -> dict[str, Any]:
    stored = model.stored
    return {
        "name": model.name,
        "model": model.name,
        "modified_at": rfc3339_of(model.modified),
        "size": stored.size_bytes,
        "digest": digest(stored.directory, model.record),
        "details": describe_model(stored).details(parent=parent_of(model)),
        "capabilities": capability_names(read_capabilities(stored.directory)),
    }


def _running(model: ServedModel, loaded: Loaded) -> dict[str, Any]:
    described = describe_model(describe(model.name, model.directory))
    return {
        "name": model.name,
        "model": model.name,
        "size": model.size_bytes,
        "digest": digest(model.directory),
        "details": described.details(),
        "expires_at": rfc3339_of(_expiry(model)),
        "size_vram": vram_bytes(loaded),
        "context_length": loaded.window,
    }


def vram_bytes(loaded: Loaded) -> int:
    """Return what a model takes of memories that are not main memory."""
    return sum(stage.size_bytes for stage in loaded.stages if stage.memory_id != HOST_MEMORY)


def _expiry(model: ServedModel) -> datetime:
    remaining_s = model.leases.remaining_s
    return FOR_EVER if remaining_s is None else datetime.now(UTC) + timedelta(seconds=remaining_s)
