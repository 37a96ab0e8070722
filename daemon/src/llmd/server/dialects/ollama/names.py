"""The field that names a model, and the models that lists show."""

from __future__ import annotations

from msgspec import structs

from llmd.registry.stored_model import StoredModel, describe
from llmd.server.errors import BadRequestError
from llmd.server.model_table import ModelTable
from llmd.server.request_fields import RequestFields


def read_name(fields: RequestFields) -> str:
    """``model``, or ``name`` as older clients call it.

    Raises:
        BadRequestError: neither is there.
    """
    named, older = fields.text("model"), fields.text("name")
    name = named or older
    if not name:
        raise BadRequestError("model is required", code="invalid_value", param="model")
    return name


def known_models(table: ModelTable) -> list[StoredModel]:
    """Every model that a request may name and that can be used, under each of its names. Reads headers: in a thread."""
    stored = {model.name: model for model in table.store.list()}
    outside = {
        name: describe(name, directory)
        for name, directory in table.directories().items()
        if name not in stored
    }
    models = stored | outside
    aliases = {
        alias: structs.replace(models[name], name=alias)
        for alias, name in table.aliases.items()
        if name in models
    }
    return [model for model in (models | aliases).values() if not model.reason]


def known_model(table: ModelTable, asked: str, *, allow_path: bool) -> StoredModel:
    """A model by any name that a request may call it; it is not loaded for that. Reads headers: in a thread.

    Raises:
        NotFoundError: there is none.
    """
    name, directory = table.locate(asked, allow_path=allow_path)
    return describe(name, directory, builtin=table.store.is_builtin(name))
