"""Reranking with a cross-encoder: it reads the query and a document as one text and returns one number."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from llmd.api.embedding import ScoreFunction
from llmd.api.errors import ContextLengthError
from llmd.api.messages import EmbedText
from llmd.chat.rerankers.reranker import logistic
from llmd.chat.tokenizers.pairs import TokenPair
from llmd.requests.fields import BadRequestError
from llmd.server.dialects.rerank.documents import Scores, cut
from llmd.server.dialects.rerank.request import RerankRequest
from llmd.server.generation.embedding import vectors_of
from llmd.server.models.served_model import ReadyModel
from llmd.server.request_record import RequestRecord


class Pairs(Struct, frozen=True):
    """Token pairs that are ready for the engine."""

    pairs: tuple[TokenPair, ...]
    function: ScoreFunction
    """Turns the model's numbers into scores."""
    truncated_tokens: int
    """Tokens that were cut off the documents."""
    ignored: tuple[str, ...]
    """Fields of the request that were ignored."""

    async def scores(self, ready: ReadyModel, record: RequestRecord) -> Scores:
        """Return the relevance of each document.

        Raises:
            LlmdError: the engine failed on one of them; the others are cancelled.
        """
        texts = [EmbedText(0, tuple(pair.ids), second_at=pair.second_at) for pair in self.pairs]
        vectors = await vectors_of(ready, texts, record)
        numbers = [float(number) for (number,) in (np.frombuffer(vector, "<f4") for vector in vectors)]
        record.finish = "stop"
        scores = list(map(logistic, numbers)) if self.function == "sigmoid" else numbers
        return Scores(scores, sum(len(text.tokens) for text in texts), self.truncated_tokens, self.ignored)


def join_pairs(ready: ReadyModel, function: ScoreFunction, request: RerankRequest) -> Pairs:
    """Tokenize the query with each document. Blocks.

    Raises:
        BadRequestError: the request has an instruction, which the model does not support.
        ContextLengthError: a document is too long.
        RequestError: the model's tokenizer cannot encode pairs.
    """
    if request.instruction:
        raise BadRequestError(
            "this model does not support an instruction",
            code="unsupported_parameter",
            param="instruction",
            hint="remove instruction",
        )
    tokenizer = ready.text.tokenizer
    documents = cut(tokenizer, request.documents, request.max_document_tokens)
    pairs = tuple(tokenizer.encode_pair(request.query, document) for document in documents.texts)
    longest = max(len(pair.ids) for pair in pairs)
    if longest > ready.window:
        longer = ready.loaded.longer_window
        raise ContextLengthError(longest, ready.window, param="documents", longer_window=longer)
    return Pairs(pairs, function, documents.truncated_tokens, request.prompt_fields)
