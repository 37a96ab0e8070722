from __future__ import annotations

from llmd.server.dialects.rerank.plugin import llmd_dialects


def test_announces_the_paths_of_jina_cohere_and_llama_cpp() -> None:
    (dialect,) = llmd_dialects()
    assert (dialect.name, dialect.errors) == ("rerank", None)
    paths = {(route.method, route.path) for route in dialect.routes()}
    assert paths == {("POST", "/v1/rerank"), ("POST", "/v2/rerank"), ("POST", "/v1/reranking")}
