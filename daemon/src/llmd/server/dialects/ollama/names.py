"""The field that names a model, and the models under all their names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from enum import StrEnum

from aiohttp import web
from msgspec import Struct, structs

from llmd.api.errors import LlmdError, NotFoundError
from llmd.registry.derived import DerivedModel
from llmd.registry.stored_model import StoredModel, describe
from llmd.requests.fields import BadRequestError, RequestFields
from llmd.server.errors import UnknownModelError
from llmd.server.http.guards import peer_of
from llmd.server.models.derived_model import AnsweringModel
from llmd.server.models.model_table import ModelTable
from llmd.server.service import Service


class NotFoundText(StrEnum):
    """Ollama's messages for a missing model (``server/routes.go``), which its clients look for.

    For routes that use a model, early versions and today's scheduler suggest pulling it; other current
    code does not. The longer text contains both messages.
    """

    USED = "model '{}' not found, try pulling it first"
    SHOWN = "model '{}' not found"
    COPIED = 'model "{}" not found'


@contextmanager
def missing_as(text: NotFoundText, asked: str) -> Iterator[None]:
    """Replace the error of the block with this text if there is no model ``asked``."""
    try:
        yield
    except UnknownModelError as error:
        if error.asked != asked:  # the base of a derived model, which the client did not name
            raise
        raise NotFoundError(text.format(asked)) from error


async def resolve(request: web.Request, service: Service, asked: str) -> AnsweringModel:
    """Return the model that answers.

    Raises:
        NotFoundError: it does not exist.
    """
    with missing_as(NotFoundText.USED, asked):
        return await service.models.resolve(asked, allow_path=peer_of(request).is_unix)


class KnownModel(Struct, frozen=True):
    """A model under one of its names."""

    name: str
    stored: StoredModel
    record: DerivedModel | None = None
    """The changes of a derived model to ``stored``; None for other models."""

    @property
    def modified(self) -> datetime:
        return self.record.modified if self.record else self.stored.modified


def read_name(fields: RequestFields) -> str:
    """Return ``model``, or ``name`` as older clients call it.

    Raises:
        BadRequestError: neither is given.
    """
    named, older = fields.text("model"), fields.text("name")
    name = named or older
    if not name:
        raise BadRequestError("model is required", code="invalid_value", param="model")
    return name


def known_models(table: ModelTable) -> list[KnownModel]:
    """Return every usable model under each of its names. Reads file headers: call it in a thread."""
    stored = {model.name: model for model in table.store.list()}
    outside = {
        name: describe(name, directory)
        for name, directory in table.directories().items()
        if name not in stored
    }
    models = stored | outside
    aliases = {alias: models[name] for alias, name in table.aliases.items() if name in models}
    usable = {name: model for name, model in (models | aliases).items() if not model.reason}
    derived = [_derived(table, name) for name in table.store.derived.names()]
    return [
        *(KnownModel(name, model) for name, model in usable.items()),
        *(model for model in derived if model is not None and not model.stored.reason),
    ]


def known_model(table: ModelTable, asked: str, *, allow_path: bool) -> KnownModel:
    """Return a model by any name that a request may use, without loading it. Call it in a thread.

    Raises:
        NotFoundError: it does not exist.
    """
    derived = table.store.derived.find(asked)
    if derived is None:
        stored = _described(table, asked, allow_path=allow_path)
        return KnownModel(stored.name, stored)
    name, record = derived
    return KnownModel(name, _described(table, record.base, allow_path=True), record)


def _derived(table: ModelTable, name: str) -> KnownModel | None:
    """Return a derived model; None if it is damaged or its base is missing."""
    try:
        return known_model(table, name, allow_path=True)
    except LlmdError:
        return None


def _described(table: ModelTable, asked: str, *, allow_path: bool) -> StoredModel:
    name, directory = table.locate(asked, allow_path=allow_path)
    return structs.replace(describe(name, directory, builtin=table.store.is_builtin(name)), name=name)
