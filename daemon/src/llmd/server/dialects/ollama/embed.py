"""``POST /api/embed`` and the older ``/api/embeddings``."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from aiohttp import web
from msgspec import Struct
from numpy.typing import NDArray

from llmd.requests.embedding import MAX_DIMENSIONS, MAX_INPUTS, EmbeddingRequest
from llmd.requests.fields import RequestFields
from llmd.requests.sampling import MAX_TOKENS
from llmd.server.dialects.ollama.names import read_name, resolve
from llmd.server.generation.embedding import Embeddings, PreparedEmbedding
from llmd.server.generation.prepared_request import truncation_header
from llmd.server.http.bodies import read_object
from llmd.server.http.json_line import encode_json
from llmd.server.http.json_response import json_response
from llmd.server.models.keep_alive import read_keep_alive
from llmd.server.request_record import current_record
from llmd.server.service import Service


class EmbedRequest(Struct, frozen=True):
    """The fields that both routes parse."""

    name: str
    truncates: bool
    window: int | None
    keep_alive_s: float | None
    ignored: tuple[str, ...]


async def embed(request: web.Request, service: Service) -> web.Response:
    """Embed texts as vectors of length 1; without a text, load the model."""
    fields = RequestFields(await read_object(request))
    texts = () if fields.value("input") == "" else fields.strings("input", MAX_INPUTS)
    dimensions = fields.integer("dimensions", 0, MAX_DIMENSIONS) or None
    asked = _read(fields)
    if not texts:
        await _load(request, service, asked)
        return json_response({"model": asked.name, "embeddings": []})
    wanted = EmbeddingRequest(
        texts, dimensions, normalizes=True, truncates=asked.truncates, window=asked.window
    )
    embeddings, headers = await _answer(request, service, asked, wanted)
    body = {
        "model": asked.name,
        "embeddings": await service.in_thread(_encoded, embeddings.vectors),
        "total_duration": embeddings.total_ns,
        "load_duration": embeddings.load_ns,
        "prompt_eval_count": embeddings.prompt_tokens,
        **_truncated(embeddings),
    }
    return json_response(body, headers=headers)


async def embed_one(request: web.Request, service: Service) -> web.Response:
    """Embed one text, for the older route. The model's configuration decides whether it is normalised."""
    fields = RequestFields(await read_object(request))
    text = fields.text("prompt") or ""
    asked = _read(fields)
    if not text:
        await _load(request, service, asked)
        return json_response({"embedding": []})
    wanted = EmbeddingRequest((text,), truncates=asked.truncates, window=asked.window, param="prompt")
    embeddings, headers = await _answer(request, service, asked, wanted)
    return json_response(
        {"embedding": embeddings.vectors[0].tolist(), **_truncated(embeddings)}, headers=headers
    )


def _read(fields: RequestFields) -> EmbedRequest:
    """Parse the fields of both routes, after all others have been parsed."""
    options = fields.nested("options")
    return EmbedRequest(
        name=read_name(fields),
        truncates=fields.boolean("truncate", default=True),
        window=options.integer("num_ctx", 1, MAX_TOKENS),
        keep_alive_s=read_keep_alive(fields),
        ignored=(*fields.ignored, *options.ignored),
    )


async def _load(request: web.Request, service: Service, asked: EmbedRequest) -> None:
    async with current_record().in_time():
        model = await resolve(request, service, asked.name)
        with model.in_use(asked.keep_alive_s):
            await model.ready()


async def _answer(
    request: web.Request, service: Service, asked: EmbedRequest, wanted: EmbeddingRequest
) -> tuple[Embeddings, dict[str, str]]:
    model = await resolve(request, service, asked.name)
    prepared = PreparedEmbedding(model, asked.ignored, wanted, asked.keep_alive_s)
    embeddings = await prepared.answer(service)
    return embeddings, prepared.headers() | truncation_header(embeddings.truncated_tokens)


def _truncated(embeddings: Embeddings) -> dict[str, Any]:
    truncated = embeddings.truncated_tokens
    return {"llmd": {"truncated_tokens": truncated}} if truncated else {}


def _encoded(vectors: NDArray[np.float32]) -> msgspec.Raw:
    """Return the vectors as JSON. Blocks."""
    return msgspec.Raw(encode_json(vectors.tolist()))
