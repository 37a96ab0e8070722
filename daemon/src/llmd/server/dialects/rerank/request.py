"""A request for a ranking: the fields of Jina, Cohere and vLLM.

Sources: the API references of Jina (``/v1/rerank``) and Cohere (``/v1/rerank``, ``/v2/rerank``); vLLM's rerank API.
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
    """What to rank, and how it is answered. ``top_n`` None: every document is returned.

    ``instruction`` None: the model's own. ``max_document_tokens`` cuts longer documents; None: none is cut.
    """

    model: str | None
    query: str
    documents: tuple[str, ...]
    top_n: int | None
    returns_documents: bool
    instruction: str | None
    max_document_tokens: int | None
    priority: int
    cache_salt: str
    keep_alive_s: float | None

    @property
    def prompt_fields(self) -> tuple[str, ...]:
        """The fields among these that were given and are about prompts, which a cross-encoder has none of."""
        given = {"cache_salt": self.cache_salt, "priority": self.priority}
        return tuple(name for name, value in given.items() if value)


def read_request(fields: RequestFields) -> RerankRequest:
    """Read every field.

    Raises:
        BadRequestError: one has another form, there is nothing to rank, or what it wants would make the order wrong.
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
    fields.refuse("rank_fields", (["text"],), "documents are texts")
    fields.refuse("truncate_prompt_tokens", (-1,), "max_tokens_per_doc cuts documents")
    fields.refuse("use_activation", (True,), "scores are probabilities")
    return request


def _query(fields: RequestFields) -> str:
    query = _text(fields.value("query"))
    if not query:
        raise fields.invalid("query", "a text that is not empty")
    return query


def _documents(fields: RequestFields) -> tuple[str, ...]:
    given = fields.value("documents")
    if not isinstance(given, list) or not given:
        raise fields.invalid("documents", "a list of texts that is not empty")
    if len(given) > MAX_DOCUMENTS:
        raise BadRequestError(
            f"there are {len(given)} documents, at most {MAX_DOCUMENTS} are ranked together",
            code="invalid_value",
            param="documents",
            hint="rank them in several requests",
        )
    documents = tuple(text for text in map(_text, given) if text is not None)
    if len(documents) < len(given):
        place = next(place for place, document in enumerate(given) if _text(document) is None)
        raise BadRequestError(
            f"documents[{place}] is no text",
            code="invalid_value",
            param=f"documents[{place}]",
            hint='send strings, or objects such as {"text": "…"}',
        )
    return documents


def _text(value: Any) -> str | None:
    """A string, or the text of ``{"text": …}``."""
    found = value.get("text") if isinstance(value, dict) else value
    return found if isinstance(found, str) else None
