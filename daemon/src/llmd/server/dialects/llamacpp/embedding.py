"""``/embedding``: embeds texts, in llama.cpp's format.

Its ``/embeddings`` is the same. OpenAI clients whose base URL lacks ``/v1`` use that path, too: a request
with ``content`` is llama.cpp's, one with ``input`` is OpenAI's.
"""

from __future__ import annotations

import msgspec
import numpy as np
from aiohttp import web

from llmd.requests.embedding import LEAST_NORM, EmbeddingRequest, Vectors, read_inputs
from llmd.requests.fields import RequestFields
from llmd.server.dialects.openai import embeddings as openai_embeddings
from llmd.server.generation.embedding import PreparedEmbedding
from llmd.server.http.bodies import read_object
from llmd.server.http.guards import peer_of
from llmd.server.http.json_line import encode_json
from llmd.server.http.json_response import json_response
from llmd.server.models.keep_alive import read_keep_alive
from llmd.server.service import Service

UNCHANGED, LARGEST, EUCLIDEAN = -1, 0, 2
MAX_NORM = 64
LARGEST_NUMBER = 32760
"""What the largest absolute value of a vector is scaled to by `LARGEST`, so that it fits into 16 bits."""


async def embed(request: web.Request, service: Service) -> web.Response:
    """Embed one or several texts."""
    return await _answer(RequestFields(await read_object(request)), request, service)


async def embed_or_openai(request: web.Request, service: Service) -> web.Response:
    """Embed texts in llama.cpp's or OpenAI's format, depending on the request."""
    fields = RequestFields(await read_object(request))
    if "content" not in fields.names:
        return await openai_embeddings.answer(request, service)
    return await _answer(fields, request, service)


async def _answer(fields: RequestFields, request: web.Request, service: Service) -> web.Response:
    name = "content" if "content" in fields.names else "input"
    norm = fields.integer("embd_normalize", UNCHANGED, MAX_NORM)
    norm = EUCLIDEAN if norm is None else norm
    wanted = EmbeddingRequest(read_inputs(fields, name), normalizes=norm == EUCLIDEAN, param=name)
    asked, keep_alive_s = fields.text("model"), read_keep_alive(fields)
    fields.refuse("image_data", (), "models read only text")
    fields.refuse(
        "encoding_format", ("float",), "numbers are returned as such; use /v1/embeddings for base64"
    )
    model = await service.models.resolve(asked, allow_path=peer_of(request).is_unix)
    prepared = PreparedEmbedding(model, fields.ignored, wanted, keep_alive_s)
    found = await prepared.answer(service)
    return json_response(await service.in_thread(_body, found.vectors, norm), headers=prepared.headers())


def _body(vectors: Vectors, norm: int) -> msgspec.Raw:
    """Return an entry per text. Its vector is in a list, as several would be without pooling. Blocks."""
    rows = [{"index": i, "embedding": [row.tolist()]} for i, row in enumerate(scaled(vectors, norm))]
    return msgspec.Raw(encode_json(rows))


def scaled(vectors: Vectors, norm: int) -> Vectors:
    """Scale vectors by ``embd_normalize``: not at all, by the largest absolute value or by the p-norm."""
    if norm in (UNCHANGED, EUCLIDEAN):  # their length is already 1
        return vectors
    sizes = np.abs(vectors.astype(np.float64))
    if norm == LARGEST:
        lengths = sizes.max(axis=1, keepdims=True) / LARGEST_NUMBER
    else:
        lengths = np.sum(sizes**norm, axis=1, keepdims=True) ** (1 / norm)
    scaled_rows: Vectors = (vectors / np.maximum(lengths, LEAST_NORM)).astype(np.float32)
    return scaled_rows
