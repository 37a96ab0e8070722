"""Registers the dialect."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api.hooks import hookimpl
from llmd.api.plugins import Dialect, Route

LLMD_API = 2


@hookimpl
def llmd_dialects() -> Sequence[Dialect]:
    return [Dialect("rerank", _routes)]


def _routes() -> Sequence[Route]:
    from llmd.server.dialects.rerank.bodies import RANK
    from llmd.server.dialects.rerank.routes import rerank

    return [Route("POST", path, rerank, body=RANK) for path in ("/v1/rerank", "/v2/rerank", "/v1/reranking")]
