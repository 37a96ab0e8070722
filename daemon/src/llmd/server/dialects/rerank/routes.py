"""``POST /v1/rerank``, and the paths of others for the same."""

from __future__ import annotations

import uuid
from typing import Any

from aiohttp import web

from llmd.server.answering.exchange import Exchange
from llmd.server.answering.generation import GenerationRequest, Usage
from llmd.server.dialects.rerank.ranking import generation_request, score
from llmd.server.dialects.rerank.request import Asked, read_asked
from llmd.server.http.bodies import read_object
from llmd.server.http.guards import peer_of
from llmd.server.http.json_response import json_response
from llmd.server.http.request_fields import RequestFields
from llmd.server.models.served_model import ReadyModel
from llmd.server.service import Service


async def rerank(request: web.Request, service: Service) -> web.Response:
    """Rank documents by how well they answer a query."""
    fields = RequestFields(await read_object(request))
    asked = read_asked(fields)
    model = await service.models.resolve(asked.model, allow_path=peer_of(request).is_unix)

    async def prepare(ready: ReadyModel) -> GenerationRequest:
        return await service.in_thread(generation_request, ready.text, asked)

    exchange = Exchange(model, fields.ignored, prepare, asked.keep_alive_s)
    ready, generation = await exchange.start()
    async with generation:
        scores = await score(generation, ready.supervisor)
    body = ranking(asked, asked.model or model.name, scores, generation.usage)
    return json_response(body, headers=exchange.headers())


def ranking(asked: Asked, name: str, scores: list[float], usage: Usage) -> dict[str, Any]:
    """The documents from the most relevant on, equal ones as they came; ``meta`` is what Cohere has for ``usage``."""
    order = sorted(range(len(scores)), key=lambda index: -scores[index])
    return {
        "id": f"rerank-{uuid.uuid4().hex}",
        "object": "list",
        "model": name,
        "results": [_result(asked, index, scores[index]) for index in order[: asked.top_n]],
        "usage": {"prompt_tokens": usage.prompt_tokens, "total_tokens": usage.prompt_tokens},
        "meta": {"tokens": {"input_tokens": usage.prompt_tokens, "output_tokens": 0}},
    }


def _result(asked: Asked, index: int, relevance: float) -> dict[str, Any]:
    document = {"document": {"text": asked.documents[index]}} if asked.returns_documents else {}
    return {"index": index, "relevance_score": relevance, **document}
