"""Texts in, vectors out: one request as the engine sees it. No dialect, no transport."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from llmd.api.embedding import Embedding
from llmd.api.errors import ContextLengthError, LlmdError, RequestError
from llmd.api.messages import EmbedText
from llmd.chat.truncation import Fitted, fit_whole
from llmd.server.answering.exchange import reply_headers
from llmd.server.answering.purpose import embedding_of
from llmd.server.errors import BadRequestError
from llmd.server.http.request_record import RequestRecord, current_record
from llmd.server.models.derived_model import AnsweringModel
from llmd.server.models.served_model import ReadyModel
from llmd.server.service import Service

MAX_INPUTS = 2048
MAX_DIMENSIONS = 1 << 20
LEAST_NORM = 1e-12
"""What a vector of zeros is divided by, as in torch."""

Text = str | tuple[int, ...]
Vectors = NDArray[np.float32]


class EmbeddingRequest(Struct, frozen=True):
    """Texts, or their tokens just as they are to be read. ``param`` is the field that holds them.

    ``dimensions``: so many of the first numbers of each vector, made length 1 again. ``normalizes`` None: as the makers
    of the model say. ``truncates``: a text that is too long is cut. ``window`` is how many tokens a text may have here,
    where that is fewer than the model's own. ``prompt_name``: which of the model's prompts stands before every text that is
    not tokens already.
    """

    texts: tuple[Text, ...]
    dimensions: int | None = None
    normalizes: bool | None = None
    truncates: bool = False
    window: int | None = None
    prompt_name: str | None = None
    param: str = "input"


class Embeddings(Struct, frozen=True):
    """``vectors`` float32 ``[texts, dimensions]``; tokens of all texts together; times in nanoseconds."""

    vectors: Vectors
    prompt_tokens: int
    truncated_tokens: int
    load_ns: int
    total_ns: int


class EmbeddingExchange(Struct, frozen=True):
    """A request that was read, with what the reply says beside its vectors; as `Exchange`."""

    model: AnsweringModel
    ignored: tuple[str, ...]
    request: EmbeddingRequest
    keep_alive_s: float | None = None

    def headers(self) -> dict[str, str]:
        """Headers of the reply."""
        return reply_headers(self.model.name, self.ignored)

    async def answer(self, service: Service) -> Embeddings:
        """Wait for the model and for the vector of every text.

        Raises:
            LlmdError: the model cannot answer, not this request, or not in time.
            BusyError: too many wait for the model.
        """
        begun, record = time.monotonic_ns(), current_record()
        with self.model.in_use(self.keep_alive_s):
            with self.model.supervisor.place(record):
                async with record.in_time():
                    ready = await self.model.ready()
                    load_ns = time.monotonic_ns() - begun
                    embedding = embedding_of(self.model.name, ready.loaded)
                    check_nested(embedding, self.request.dimensions)
                    texts = await service.in_thread(to_tokens, ready, embedding, self.request)
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
    """The vector of each text as the engine sends it; texts that nobody waits for any more are cancelled."""
    vectors = [b""] * len(texts)
    with closing(ready.supervisor.embed(texts, record)) as mailbox:
        for _ in texts:
            index, answer = await mailbox.next()
            vectors[index] = answer.vector
    return vectors


def check_nested(embedding: Embedding, dimensions: int | None) -> None:
    """Refuse to cut vectors whose first numbers mean nothing by themselves.

    Raises:
        BadRequestError: the makers of the model do not say that they do, or name other lengths.
    """
    listed = embedding.nested_dimensions
    if dimensions is None or (embedding.nested and (not listed or dimensions in listed)):
        return
    lengths = (
        f"it can give {', '.join(map(str, listed))}" if listed else "its vectors mean something only whole"
    )
    raise BadRequestError(
        f"dimensions {dimensions}: the model was not made for that, {lengths}",
        code="invalid_value",
        param="dimensions",
        hint="leave it out"
        if listed
        else 'leave it out; a model that was made for it says "is_matryoshka": true in config.json',
    )


def to_tokens(ready: ReadyModel, embedding: Embedding, request: EmbeddingRequest) -> list[Fitted]:
    """The tokens of every text. Blocks.

    Raises:
        ContextLengthError: a text is too long, and may not be cut.
        RequestError: a text has no tokens, or one that the model does not know; or there is no prompt of that name.
    """
    window = min(ready.window, request.window or ready.window)
    prompt = prompt_of(embedding, request.prompt_name)
    prompted = (prompt + text if isinstance(text, str) else text for text in request.texts)
    return [_tokens(ready, embedding, request, text, window) for text in prompted]


def prompt_of(embedding: Embedding, name: str | None) -> str:
    """What stands before a text.

    Raises:
        BadRequestError: the model has no prompt of that name.
    """
    if name is None:
        return embedding.default_prompt
    if name not in embedding.prompts:
        known = ", ".join(embedding.prompts) or "none"
        raise BadRequestError(
            f"the model has no prompt {name!r}, it has {known}",
            code="invalid_value",
            param="prompt_name",
            hint="leave it out, or write the prompt into the text",
        )
    return embedding.prompts[name]


def _tokens(
    ready: ReadyModel, embedding: Embedding, request: EmbeddingRequest, text: Text, window: int
) -> Fitted:
    ids: Sequence[int] = text if isinstance(text, tuple) else _encoded(ready, embedding, text)
    if not ids:
        raise RequestError("a text has no tokens", param=request.param, hint="send at least one character")
    if max(ids) >= ready.loaded.vocab_size:
        raise RequestError(
            f"a text has the token id {max(ids)}, the vocabulary ends with {ready.loaded.vocab_size - 1}",
            param=request.param,
            hint="use the tokenizer of this model",
        )
    if len(ids) > window and not request.truncates:
        raise ContextLengthError(len(ids), window, param=request.param)
    ending = 0 if isinstance(text, tuple) else len(ready.text.tokenizer.vocabulary.suffix_ids)
    return fit_whole(ids, window, ending)


def _encoded(ready: ReadyModel, embedding: Embedding, text: str) -> list[int]:
    return ready.text.tokenizer.encode_whole(text.lower() if embedding.lower_cases else text)


def to_vectors(found: Sequence[bytes], embedding: Embedding, request: EmbeddingRequest) -> Vectors:
    """The vectors as the request wants them. Blocks.

    Raises:
        BadRequestError: they are shorter than ``dimensions``.
        LlmdError: the model computed numbers that are none.
    """
    vectors = np.stack([np.frombuffer(one, "<f4") for one in found])
    length, wanted = vectors.shape[1], request.dimensions
    if wanted is not None and wanted > length:
        raise BadRequestError(
            f"dimensions must be between 1 and {length}, not {wanted}",
            code="invalid_value",
            param="dimensions",
        )
    if not np.isfinite(vectors).all():
        raise not_finite("numbers")
    normalizes = embedding.normalizes if request.normalizes is None else request.normalizes
    cut = vectors[:, :wanted]
    return normalized(cut) if normalizes or wanted is not None else cut


def not_finite(what: str) -> LlmdError:
    """The error of a model that computes what no client could use."""
    return LlmdError(
        f"the model computed {what} that are not finite",
        hint="its weights may be damaged: pull it again; or serve it with --kv-dtype f32",
    )


def normalized(vectors: Vectors) -> Vectors:
    """Each row with the length 1; zeros stay zeros."""
    norms = np.sqrt(np.sum(np.square(vectors, dtype=np.float64), axis=1, keepdims=True))
    lengths: Vectors = (vectors / np.maximum(norms, LEAST_NORM)).astype(np.float32)
    return lengths
