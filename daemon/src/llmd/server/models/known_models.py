"""The models that a request may name, under all their names, loaded or not."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct, structs

from llmd.api.errors import LlmdError
from llmd.registry.derived import DerivedModel
from llmd.registry.stored_model import StoredModel, describe
from llmd.server.models.model_table import ModelTable


class KnownModel(Struct, frozen=True):
    """A model under one of its names."""

    name: str
    stored: StoredModel
    record: DerivedModel | None = None
    """The changes of a derived model to ``stored``, its base; None for other models."""

    @property
    def modified(self) -> datetime:
        return self.record.modified if self.record else self.stored.modified


def described_models(table: ModelTable) -> list[StoredModel]:
    """Describe the models of the store, then those that were given by path; broken ones state the reason.

    Reads file headers: call it in a thread.
    """
    stored = table.store.list()
    names = {model.name for model in stored}
    outside = [(name, directory) for name, directory in table.directories().items() if name not in names]
    return [*stored, *(describe(name, directory) for name, directory in outside)]


def known_models(table: ModelTable) -> list[KnownModel]:
    """Return every usable model under each of its names. Reads file headers: call it in a thread."""
    models = {model.name: model for model in described_models(table)}
    aliases = {alias: models[name] for name in models for alias in table.names_of(name)[1:]}
    usable = {name: model for name, model in (models | aliases).items() if not model.reason}
    derived = [
        _derived(table, name)
        for known in (*table.store.derived.names(), *table.adapters())
        for name in table.names_of(known)
    ]
    return [
        *(KnownModel(name, model) for name, model in usable.items()),
        *(model for model in derived if model is not None and not model.stored.reason),
    ]


def known_model(table: ModelTable, asked: str, *, allow_path: bool) -> KnownModel:
    """Return a model by any name that a request may use, without loading it. Call it in a thread.

    Raises:
        NotFoundError: it does not exist.
    """
    derived = table.derived_of(asked)
    if derived is None:
        stored = _described(table, asked, allow_path=allow_path)
        return KnownModel(stored.name, stored)
    name, record = derived
    return KnownModel(name, _described(table, record.base, allow_path=True), record)


def _derived(table: ModelTable, name: str) -> KnownModel | None:
    """Return a derived model under one of its names; None if it is damaged or its base is missing."""
    try:
        return structs.replace(known_model(table, name, allow_path=True), name=name)
    except LlmdError:
        return None


def _described(table: ModelTable, asked: str, *, allow_path: bool) -> StoredModel:
    name, directory = table.locate(asked, allow_path=allow_path)
    return structs.replace(describe(name, directory, builtin=table.store.is_builtin(name)), name=name)
