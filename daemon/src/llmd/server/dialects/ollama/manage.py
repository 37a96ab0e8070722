"""``POST /api/copy`` and ``DELETE /api/delete``."""

from __future__ import annotations

import time

from aiohttp import web
from msgspec import structs

from llmd.api.errors import NotFoundError
from llmd.registry.derived import DerivedModel
from llmd.registry.names import check_model_name
from llmd.requests.fields import BadRequestError, RequestFields
from llmd.server.dialects.ollama.create import new_name, refuse_adapter
from llmd.server.dialects.ollama.names import NotFoundText, missing_as, read_name
from llmd.server.http.bodies import read_object
from llmd.server.http.guards import peer_of
from llmd.server.models.known_models import known_model
from llmd.server.models.model_table import ModelTable
from llmd.server.service import Service


async def copy(request: web.Request, service: Service) -> web.Response:
    """Copy a model under a second name.

    The files of a pulled model are shared; otherwise the copy is a derived model without changes.
    """
    fields = RequestFields(await read_object(request))
    source, destination = fields.text("source"), fields.text("destination")
    if not source or not destination:
        raise BadRequestError(
            "source and destination are required", code="invalid_value", param="destination"
        )
    name = new_name(service.models, destination, "destination")
    allow_path = peer_of(request).is_unix
    with missing_as(NotFoundText.COPIED, source):
        await service.in_thread(_copy, service.models, source, name, allow_path=allow_path)
    return web.Response()


async def delete(request: web.Request, service: Service) -> web.Response:
    """Delete a derived or pulled model; an idle pulled one is unloaded first.

    Raises:
        RequestError: the name is not valid.
        NotFoundError: no model has that name.
        BadRequestError: it is a directory of the user.
        ConflictError: it is in use.
    """
    name = read_name(RequestFields(await read_object(request)))
    known = name.removesuffix(":latest")
    is_derived = await service.in_thread(service.models.store.derived.find, name) is not None
    if not is_derived and await service.in_thread(service.models.store.is_pulled, known):
        if any(served.name == known and not served.leases.users for served in service.models.served):
            await service.models.unload(known)
        await service.in_thread(service.models.store.pulled_models.remove, known)
    else:
        await service.in_thread(_delete, service.models, name)
    return web.Response()


def _copy(table: ModelTable, source: str, destination: str, *, allow_path: bool) -> None:
    store = table.store
    known = known_model(table, source, allow_path=allow_path)
    refuse_adapter(known.record, "source")
    if known.record is None and store.is_pulled(known.name):
        store.pulled_models.copy(known.stored.directory, destination)
        return
    base = known.name if known.name in store.directories() else str(known.stored.directory)
    record = known.record or DerivedModel(base, 0.0)
    store.derived.save(destination, structs.replace(record, created=time.time()))


def _delete(table: ModelTable, name: str) -> None:
    derived = table.store.derived.find(name)
    if derived is not None:
        table.store.derived.remove(derived[0])
        return
    if name.removesuffix(":latest") not in table.directories():
        check_model_name(name)
        raise NotFoundError(NotFoundText.SHOWN.format(name))
    raise BadRequestError(
        f"{name} is a directory that llmd did not create",
        code="not_ours",
        param="model",
        hint="delete the directory yourself",
    )
