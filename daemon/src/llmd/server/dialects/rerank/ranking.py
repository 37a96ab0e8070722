"""Runs a rerank request on a model, whichever kind of reranker that is."""

from __future__ import annotations

import math

from msgspec import Struct

from llmd.requests.embedding import not_finite
from llmd.server.dialects.rerank.answers import Answers, ask_about
from llmd.server.dialects.rerank.documents import Scores
from llmd.server.dialects.rerank.pairs import Pairs, join_pairs
from llmd.server.dialects.rerank.request import RerankRequest
from llmd.server.generation.prepared_request import reply_headers, wait_for
from llmd.server.models.derived_model import AnsweringModel
from llmd.server.models.served_model import ReadyModel
from llmd.server.request_record import current_record
from llmd.server.service import Service


class Ranking(Struct, frozen=True):
    """A parsed rerank request, like `PreparedRequest` for generations."""

    model: AnsweringModel
    ignored: tuple[str, ...]
    request: RerankRequest

    def headers(self, scores: Scores) -> dict[str, str]:
        """Return the headers of the reply."""
        return reply_headers(self.model.name, tuple(sorted(self.ignored + scores.ignored)))

    async def scores(self, service: Service) -> Scores:
        """Wait for the model and for the score of every document.

        Raises:
            LlmdError: the model does not rerank, cannot answer this request or not in time, or a score is
                not finite.
            BusyError: the model's queue is full.
        """
        with self.model.in_use(self.request.keep_alive_s):
            ready, work = await wait_for(
                self.model, lambda ready: service.in_thread(prepare, ready, self.request)
            )
            scores = await work.scores(ready, current_record())
        if not all(map(math.isfinite, scores.relevance)):
            raise not_finite("scores")
        return scores


def prepare(ready: ReadyModel, request: RerankRequest) -> Answers | Pairs:
    """Prepare the work for the engine. Blocks.

    Raises:
        RequestError: the model does not rerank, or cannot rerank this request.
    """
    embedding = ready.loaded.embedding
    if embedding is None or embedding.score is None:
        return ask_about(ready.text, request)
    return join_pairs(ready, embedding.score, request)
