"""A ranking by a model that generates: one token for each document, of which only two logprobs are looked at.

All documents are one generation: they wait in one place of the queue, are cancelled together, and share the prefix that
the query is.
"""

from __future__ import annotations

from llmd.chat.model_text import ModelText
from llmd.chat.rerankers.reranker import relevance
from llmd.chat.sampling_choice import SamplingChoice
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.server.answering.generation import EndChoice, Generation, GenerationRequest
from llmd.server.dialects.rerank.request import Asked
from llmd.server.engines.supervisor import Supervisor


def generation_request(text: ModelText, asked: Asked) -> GenerationRequest:
    """The request to the engine. Blocks.

    Raises:
        RequestError: the model does not rank, or its template refuses a text.
    """
    documents = [_cut(text.tokenizer, document, asked.max_document_tokens) for document in asked.documents]
    return GenerationRequest(
        prompts=tuple(text.encode_pair(asked.query, document, asked.instruction) for document in documents),
        sampling=SamplingChoice(temperature=0.0, logprobs=0, logprob_ids=text.as_reranker().answer_ids),
        end=EndChoice(max_tokens=1, ignore_eos=True),
        param="documents",
        priority=asked.priority,
        cache_salt=asked.cache_salt,
        together=True,
    )


async def score(generation: Generation, supervisor: Supervisor) -> list[float]:
    """The relevance of each document.

    Raises:
        LlmdError: the engine could not look at one of them; the others are cancelled.
    """
    scores = [0.0] * len(generation.request.prompts)
    async for index, piece in generation.pieces(supervisor):
        (token,) = piece.tokens
        scores[index] = relevance([answer.logprob for answer in token.top])
    return scores


def _cut(tokenizer: Tokenizer, document: str, most: int | None) -> str:
    if most is None:
        return document
    tokens = tokenizer.encode(document, add_special=False, parse_special=False)
    return document if len(tokens) <= most else tokenizer.decode(tokens[:most])
