"""``POST /v1/rerank`` and its aliases."""

from __future__ import annotations

import uuid
from typing import Any

from aiohttp import web

from llmd.requests.fields import RequestFields
from llmd.server.dialects.rerank.documents import Scores
from llmd.server.dialects.rerank.ranking import Ranking
from llmd.server.dialects.rerank.request import RerankRequest, read_request
from llmd.server.generation.prepared_request import truncation_header
from llmd.server.http.bodies import read_object
from llmd.server.http.guards import peer_of
from llmd.server.http.json_response import json_response
from llmd.server.service import Service


async def rerank(request: web.Request, service: Service) -> web.Response:
    """Rank documents by their relevance to a query."""
    fields = RequestFields(await read_object(request))
    wanted = read_request(fields)
    model = await service.models.resolve(wanted.model, allow_path=peer_of(request).is_unix)
    ranking = Ranking(model, fields.ignored, wanted)
    scores = await ranking.scores(service)
    body = body_of(wanted, wanted.model or model.name, scores)
    return json_response(body, headers=ranking.headers(scores) | truncation_header(scores.truncated_tokens))


def body_of(request: RerankRequest, name: str, scores: Scores) -> dict[str, Any]:
    """Return the documents by relevance, best first, ties in order. ``meta`` is Cohere's ``usage``."""
    relevance, tokens = scores.relevance, scores.prompt_tokens
    order = sorted(range(len(relevance)), key=lambda index: -relevance[index])
    return {
        "id": f"rerank-{uuid.uuid4().hex}",
        "object": "list",
        "model": name,
        "results": [_result(request, index, relevance[index]) for index in order[: request.top_n]],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        "meta": {"tokens": {"input_tokens": tokens, "output_tokens": 0}},
    }


def _result(request: RerankRequest, index: int, relevance: float) -> dict[str, Any]:
    document = {"document": {"text": request.documents[index]}} if request.returns_documents else {}
    return {"index": index, "relevance_score": relevance, **document}
