"""Rankings over plain HTTP, read strictly."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.serving.http import Reply, send
from tests.serving.reranker import DOCUMENTS, QUERY, RERANKER
from tests.serving.running import RunningDaemon


class Document(msgspec.Struct, forbid_unknown_fields=True):
    text: str


class Result(msgspec.Struct, forbid_unknown_fields=True):
    index: int
    relevance_score: float
    document: Document | None = None


class Usage(msgspec.Struct, forbid_unknown_fields=True):
    prompt_tokens: int
    total_tokens: int


class Ranking(msgspec.Struct, forbid_unknown_fields=True):
    """What Jina and vLLM document, and Cohere's ``meta``."""

    id: str
    object: str
    model: str
    results: list[Result]
    usage: Usage
    meta: dict[str, dict[str, int]]


def ask(daemon: RunningDaemon, path: str = "/v1/rerank", **fields: Any) -> Reply:
    return send(daemon, "POST", path, {"model": RERANKER, "query": QUERY, "documents": DOCUMENTS, **fields})


def ranked(reply: Reply) -> Ranking:
    assert reply.status == 200, reply.content
    return msgspec.json.decode(reply.content, type=Ranking)


def scores(reply: Reply) -> list[float]:
    """By document."""
    return [result.relevance_score for result in sorted(ranked(reply).results, key=lambda one: one.index)]
