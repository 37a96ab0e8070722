"""Parses a rerank request: the fields of Jina, Cohere and vLLM.

Sources: the API references of Jina (``/v1/rerank``) and Cohere (``/v1/rerank``, ``/v2/rerank``); vLLM's
rerank API.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from llmd.requests.fields import BadRequestError, RequestFields
from llmd.server.dialects.openai.fields import MAX_PRIORITY
from llmd.server.models.keep_alive import read_keep_alive

MAX_DOCUMENTS = 2048
MAX_DOCUMENT_TOKENS = 1 << 20


class RerankRequest(Struct, frozen=True):
    """A parsed rerank request."""

    model: str | None
    query: str
    documents: tuple[str, ...]
    top_n: int | None
    """How many documents to return; None: all."""
    returns_documents: bool
    instruction: str | None
    """None: the model's own instruction."""
    max_document_tokens: int | None
    """Longer documents are truncated to this length; None: none is."""
    priority: int
    cache_salt: str
    keep_alive_s: float | None

    @property
    def prompt_fields(self) -> tuple[str, ...]:
        """The given fields that affect only prompts, which a cross-encoder does not have."""
        given = {"cache_salt": self.cache_salt, "priority": self.priority}
        return tuple(name for name, value in given.items() if value)


def read_request(fields: RequestFields) -> RerankRequest:
    """Parse every field.

    Raises:
        BadRequestError: a field is malformed, there is nothing to rank, or a field cannot be supported and
            would change the ranking.
    """
    request = RerankRequest(
        model=fields.text("model"),
        query=_query(fields),
        documents=_documents(fields),
        top_n=fields.integer("top_n", 0, MAX_DOCUMENTS) or None,
        returns_documents=fields.boolean("return_documents"),
        instruction=fields.text("instruction"),
        max_document_tokens=fields.integer("max_tokens_per_doc", 1, MAX_DOCUMENT_TOKENS),
        priority=fields.integer("priority", -MAX_PRIORITY, MAX_PRIORITY) or 0,
        cache_salt=fields.text("cache_salt") or "",
        keep_alive_s=read_keep_alive(fields),
    )
    fields.refuse("rank_fields", (["text"],), "documents are ranked by their text only")
    fields.refuse("truncate_prompt_tokens", (-1,), "use max_tokens_per_doc to truncate documents")
    fields.refuse("use_activation", (True,), "scores are probabilities")
    return request


def _query(fields: RequestFields) -> str:
    query = _text(fields.value("query"))
    if not query:
        raise fields.invalid("query", "a non-empty text")
    return query


def _documents(fields: RequestFields) -> tuple[str, ...]:
    given = fields.value("documents")
    if not isinstance(given, list) or not given:
        raise fields.invalid("documents", "a non-empty list of texts")
    if len(given) > MAX_DOCUMENTS:
        raise BadRequestError(
            f"the request has {len(given)} documents; at most {MAX_DOCUMENTS} can be ranked at once",
            code="invalid_value",
            param="documents",
            hint="split them into several requests",
        )
    documents = tuple(text for text in map(_text, given) if text is not None)
    if len(documents) < len(given):
        place = next(place for place, document in enumerate(given) if _text(document) is None)
        raise BadRequestError(
            f"documents[{place}] is not a text",
            code="invalid_value",
            param=f"documents[{place}]",
            hint='send strings, or objects such as {"text": "…"}',
        )
    return documents


def _text(value: Any) -> str | None:
    """Return a string, or the text of ``{"text": …}``; None otherwise."""
    found = value.get("text") if isinstance(value, dict) else value
    return found if isinstance(found, str) else None
