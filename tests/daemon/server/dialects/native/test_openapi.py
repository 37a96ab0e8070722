from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from llmd.requests.fields import RequestFields
from tests.serving.http import send
from tests.serving.running import EMBEDDER, MODEL, RunningDaemon

CONVERSATION = {"model": MODEL, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1}
RANKED = {"model": MODEL, "query": "q", "documents": ["d"]}
SAMPLES: dict[str, list[dict[str, Any]]] = {
    "POST /v1/chat/completions": [CONVERSATION, CONVERSATION | {"use_beam_search": True}],
    "POST /v1/chat/completions/input_tokens": [CONVERSATION],
    "POST /v1/completions": [{"model": MODEL, "max_tokens": 1}, {"model": MODEL, "use_beam_search": True}],
    "POST /v1/embeddings": [{"model": EMBEDDER, "input": "a"}],
    "POST /v1/responses": [{"model": MODEL, "input": "a", "max_output_tokens": 1}],
    "POST /v1/responses/compact": [{"model": "missing", "input": "a"}],
    "POST /v1/responses/input_tokens": [{"model": MODEL, "input": "a"}],
    "POST /llmd/cancel": [{"request_id": "missing"}],
    "POST /llmd/load": [{"model": MODEL, "keep_alive": -1}],
    "POST /v1/messages": [CONVERSATION],
    "POST /v1/messages/count_tokens": [CONVERSATION],
    "POST /api/show": [{"model": MODEL}],
    "POST /api/create": [{"model": "new", "from": MODEL}],
    "POST /api/pull": [{"model": "no name: of a hub"}],
    "POST /api/copy": [{"source": "missing", "destination": "copy"}],
    "DELETE /api/delete": [{"model": "missing"}],
    "POST /api/generate": [{"model": MODEL, "prompt": "a", "options": {"num_predict": 1}}],
    "POST /api/chat": [{**CONVERSATION, "options": {"num_predict": 1}}],
    "POST /api/embed": [{"model": EMBEDDER, "input": "a"}],
    "POST /api/embeddings": [{"model": EMBEDDER, "prompt": "a"}],
    "POST /tokenize": [
        {"model": MODEL, "content": "a"},
        {"model": MODEL, "prompt": "a"},
        {"model": MODEL, "messages": CONVERSATION["messages"]},
    ],
    "POST /detokenize": [{"model": MODEL, "tokens": [1]}],
    "POST /apply-template": [CONVERSATION],
    "POST /completion": [{"model": MODEL, "prompt": "a", "n_predict": 1}],
    "POST /infill": [{"model": MODEL, "n_predict": 1}],
    "POST /embedding": [{"model": EMBEDDER, "content": "a"}, {"model": EMBEDDER, "input": "a"}],
    "POST /embeddings": [{"model": EMBEDDER, "content": "a"}, {"model": EMBEDDER, "input": "a"}],
    "POST /v1/rerank": [RANKED],
    "POST /v2/rerank": [RANKED],
    "POST /v1/reranking": [RANKED],
    "POST /llmd/stop": [{"model": "missing"}],
    "POST /llmd/pull": [{"model": "no such name"}],
}
"""Bodies by route; together, those of a route make it read every field that it has."""


class Reads:
    """The names of the fields that the daemon reads, as it reads them."""

    def __init__(self) -> None:
        self.read: set[str] = set()
        self.refused: set[str] = set()

    def clear(self) -> None:
        self.read.clear()
        self.refused.clear()


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    found = Reads()
    value, repeated, refuse = RequestFields.value, RequestFields.repeated, RequestFields.refuse

    def noted_value(self: RequestFields, name: str) -> Any:
        if not self._prefix:
            found.read.add(name)
        return value(self, name)

    def noted_repeated(self: RequestFields, name: str) -> str | None:
        found.read.add(name)
        return repeated(self, name)

    def noted_refuse(self: RequestFields, name: str, neutral: Collection[Any], why: str) -> None:
        if not self._prefix:
            found.refused.add(name)
        refuse(self, name, neutral, why)

    monkeypatch.setattr(RequestFields, "value", noted_value)
    monkeypatch.setattr(RequestFields, "repeated", noted_repeated)
    monkeypatch.setattr(RequestFields, "refuse", noted_refuse)
    return found


def served(daemon: RunningDaemon) -> dict[str, Any]:
    described: dict[str, Any] = send(daemon, "GET", "/openapi.json").json
    return described


def body_of(operation: dict[str, Any]) -> set[str]:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return set(content.get("schema", {}).get("properties", ()))


def test_the_document_is_that_of_this_daemon(daemon: RunningDaemon) -> None:
    reply = send(daemon, "GET", "/openapi.json")
    assert (reply.status, reply.headers["Content-Type"]) == (200, "application/json")
    assert reply.json["info"]["version"] == send(daemon, "GET", "/version").json["version"]
    assert list(OpenAPIV31SpecValidator(reply.json).iter_errors()) == []


def test_every_path_in_it_is_answered(daemon: RunningDaemon) -> None:
    for path, methods in served(daemon)["paths"].items():
        reply = send(daemon, "OPTIONS", path.replace("{id}", "x"))
        assert set(methods) <= set(reply.headers["Allow"].lower().split(", "))


def test_every_route_with_a_body_has_a_sample(daemon: RunningDaemon) -> None:
    with_body = {
        f"{method.upper()} {path}"
        for path, methods in served(daemon)["paths"].items()
        for method, operation in methods.items()
        if "requestBody" in operation
    }
    assert with_body == set(SAMPLES)


@pytest.mark.parametrize("route", SAMPLES)
def test_bodies_have_the_fields_that_handlers_read(
    route: str, daemon: RunningDaemon, embedder: RunningDaemon, reads: Reads
) -> None:
    method, path = route.split()
    found: set[str] = set()
    for body in SAMPLES[route]:
        reads.clear()
        send(embedder if body.get("model") == EMBEDDER else daemon, method, path, body)
        found |= reads.read - reads.refused
    assert body_of(served(daemon)["paths"][path][method.lower()]) == found


def test_bodies_are_declared_where_handlers_read_them(daemon: RunningDaemon, reads: Reads) -> None:
    for path, methods in served(daemon)["paths"].items():
        for method, operation in methods.items():
            if "requestBody" not in operation and method in {"post", "delete"}:
                send(daemon, method.upper(), path.replace("{id}", "x"), {})
    assert reads.read == set()
