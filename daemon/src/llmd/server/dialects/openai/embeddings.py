"""``POST /v1/embeddings``."""

from __future__ import annotations

import base64
from typing import Any, Literal

import msgspec
import numpy as np
from aiohttp import web
from numpy.typing import NDArray

from llmd.requests.embedding import MAX_DIMENSIONS, EmbeddingRequest, read_inputs
from llmd.requests.fields import RequestFields
from llmd.server.dialects.openai.completions import REFUSED_IN_COMPLETIONS
from llmd.server.dialects.openai.fields import REFUSED, refuse
from llmd.server.generation.embedding import PreparedEmbedding
from llmd.server.http.bodies import read_object
from llmd.server.http.guards import peer_of
from llmd.server.http.json_line import encode_json
from llmd.server.http.json_response import json_response
from llmd.server.models.keep_alive import read_keep_alive
from llmd.server.service import Service

Encoding = Literal["float", "base64"]


async def answer(request: web.Request, service: Service) -> web.Response:
    """Embed texts."""
    fields = RequestFields(await read_object(request))
    asked = fields.text("model")
    encoding = read_encoding(fields)
    wanted = EmbeddingRequest(
        read_inputs(fields),
        dimensions=fields.integer("dimensions", 1, MAX_DIMENSIONS),
        prompt_name=fields.text("prompt_name"),
    )
    keep_alive_s = read_keep_alive(fields)
    refuse(fields, {**REFUSED, **REFUSED_IN_COMPLETIONS})
    model = await service.models.resolve(asked, allow_path=peer_of(request).is_unix)
    prepared = PreparedEmbedding(model, fields.ignored, wanted, keep_alive_s)
    embeddings = await prepared.answer(service)
    body = {
        "object": "list",
        "data": await service.in_thread(encoded, embeddings.vectors, encoding),
        "model": asked or model.name,
        "usage": {"prompt_tokens": embeddings.prompt_tokens, "total_tokens": embeddings.prompt_tokens},
    }
    return json_response(body, headers=prepared.headers())


def read_encoding(fields: RequestFields) -> Encoding:
    """Return how to write the numbers. OpenAI's client requests base64 unless its user chooses a format."""
    value = fields.text("encoding_format")
    if value in (None, "float"):
        return "float"
    if value == "base64":
        return "base64"
    raise fields.invalid("encoding_format", "float or base64")


def encoded(vectors: NDArray[np.float32], encoding: Encoding) -> msgspec.Raw:
    """Return the list of embeddings as JSON. Blocks: long lists take a while to encode."""
    rows = [
        {"object": "embedding", "index": i, "embedding": _row(row, encoding)} for i, row in enumerate(vectors)
    ]
    return msgspec.Raw(encode_json(rows))


def _row(row: NDArray[np.float32], encoding: Encoding) -> Any:
    """Return the numbers, or base64 of little-endian float32."""
    return row.tolist() if encoding == "float" else base64.b64encode(row.astype("<f4").tobytes()).decode()
