"""The field that names a model, and the errors for a model that does not exist."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

from aiohttp import web

from llmd.api.errors import NotFoundError
from llmd.requests.fields import BadRequestError, RequestFields
from llmd.server.errors import UnknownModelError
from llmd.server.http.guards import peer_of
from llmd.server.models.derived_model import AnsweringModel
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
