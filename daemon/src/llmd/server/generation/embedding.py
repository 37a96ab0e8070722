"""Runs one embedding request: texts in, vectors out. Independent of dialect and transport."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing

from msgspec import Struct

from llmd.api.embedding import Embedding
from llmd.api.messages import EmbedText
from llmd.chat.truncation import Fitted
from llmd.requests.embedding import (
    EmbeddingRequest,
    Reader,
    Vectors,
    check_nested,
    to_tokens,
    to_vectors,
)
from llmd.requests.model_kind import embedding_of
from llmd.server.generation.prepared_request import reply_headers, wait_for
from llmd.server.models.derived_model import AnsweringModel
from llmd.server.models.served_model import ReadyModel
from llmd.server.request_record import RequestRecord, current_record
from llmd.server.service import Service


class Embeddings(Struct, frozen=True):
    """The result of a request; token counts are sums over all texts."""

    vectors: Vectors
    """float32 ``[texts, dimensions]``."""
    prompt_tokens: int
    truncated_tokens: int
    load_ns: int
    total_ns: int


class PreparedEmbedding(Struct, frozen=True):
    """A request that was read, with its model and reply headers; see `PreparedRequest`."""

    model: AnsweringModel
    ignored: tuple[str, ...]
    request: EmbeddingRequest
    keep_alive_s: float | None = None

    def headers(self) -> dict[str, str]:
        """Headers of the reply."""
        return reply_headers(self.model.name, self.ignored)

    async def answer(self, service: Service) -> Embeddings:
        """Wait for the model, then return the vectors of all texts.

        Raises:
            LlmdError: the model cannot answer, cannot answer this request, or does not answer in time.
            BusyError: too many requests wait for the model.
        """
        begun, record, load_ns = time.monotonic_ns(), current_record(), 0

        async def prepare(ready: ReadyModel) -> tuple[Embedding, list[Fitted]]:
            nonlocal load_ns
            load_ns = time.monotonic_ns() - begun
            embedding = embedding_of(self.model.name, ready.loaded)
            check_nested(embedding, self.request.dimensions)
            reader = Reader(
                embedding,
                ready.text.tokenizer,
                ready.loaded.vocab_size,
                ready.window,
                ready.loaded.longer_window,
            )
            return embedding, await service.in_thread(to_tokens, reader, self.request)

        with self.model.in_use(self.keep_alive_s):
            ready, (embedding, texts) = await wait_for(self.model, prepare)
            found = await vectors_of(ready, [EmbedText(0, text.tokens) for text in texts], record)
        vectors = await service.in_thread(to_vectors, found, embedding, self.request)
        record.finish = "stop"
        return Embeddings(
            vectors=vectors,
            prompt_tokens=sum(len(text.tokens) for text in texts),
            truncated_tokens=sum(text.truncated_tokens for text in texts),
            load_ns=load_ns,
            total_ns=time.monotonic_ns() - begun,
        )


async def vectors_of(ready: ReadyModel, texts: Sequence[EmbedText], record: RequestRecord) -> list[bytes]:
    """Return the vector of each text in the engine's bytes.
    If the caller stops waiting, pending texts are cancelled.
    """
    vectors = [b""] * len(texts)
    with closing(ready.supervisor.embed(texts, record)) as mailbox:
        for _ in texts:
            index, answer = await mailbox.next()
            vectors[index] = answer.vector
    return vectors
