"""Reranking with a generating model: one token per document, of which only two logprobs are used.

All documents are one generation: they count as one sequence in the queue, are cancelled together, and
share the prefix with the query.
"""

from __future__ import annotations

from msgspec import Struct

from llmd.chat.model_text import ModelText
from llmd.chat.rerankers.reranker import relevance
from llmd.requests.ending import EndChoice
from llmd.requests.sampling import SamplingChoice
from llmd.server.dialects.rerank.documents import Scores, cut
from llmd.server.dialects.rerank.request import RerankRequest
from llmd.server.generation.generation import Generation, GenerationRequest
from llmd.server.models.served_model import ReadyModel
from llmd.server.request_record import RequestRecord


class Answers(Struct, frozen=True):
    """Prompts that are ready for the engine."""

    request: GenerationRequest
    truncated_tokens: int
    """Tokens that were cut off the documents."""

    async def scores(self, ready: ReadyModel, record: RequestRecord) -> Scores:
        """Return the relevance of each document.

        Raises:
            LlmdError: the engine failed on one of them; the others are cancelled.
        """
        found = [0.0] * len(self.request.prompts)
        loaded = ready.loaded
        async with Generation(
            self.request,
            ready.text,
            ready.window,
            loaded.vocab_size,
            longer_window=loaded.longer_window,
            adapter=ready.adapter,
        ) as generation:
            async for index, piece in generation.pieces(ready.supervisor):
                (token,) = piece.tokens
                found[index] = relevance([answer.logprob for answer in token.top])
        return Scores(found, generation.usage.prompt_tokens, self.truncated_tokens)


def ask_about(text: ModelText, request: RerankRequest) -> Answers:
    """Return the generation that asks the model about each document. Blocks.

    Raises:
        RequestError: the model does not rerank, or its template refuses a text.
    """
    documents = cut(text.tokenizer, request.documents, request.max_document_tokens)
    return Answers(
        GenerationRequest(
            prompts=tuple(
                text.encode_pair(request.query, document, request.instruction) for document in documents.texts
            ),
            sampling=SamplingChoice(temperature=0.0, logprobs=0, logprob_ids=text.as_reranker().answer_ids),
            end=EndChoice(max_tokens=1, ignore_eos=True),
            param="documents",
            priority=request.priority,
            cache_salt=request.cache_salt,
            together=True,
        ),
        documents.truncated_tokens,
    )
