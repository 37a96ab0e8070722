"""The body of the routes that rank, as ``/openapi.json`` describes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Required, TypedDict

from llmd.requests.model_fields import ModelFields


class RankFields(TypedDict, total=False):
    """A query and its documents."""

    query: Required[str | Mapping[str, Any]]
    """What the documents are ranked for: a text, or an object with text."""
    documents: Required[Sequence[str | Mapping[str, Any]]]
    """Texts, or objects with text."""
    top_n: int | None
    """How many documents are returned; 0 or absent: all."""
    return_documents: bool | None
    """Return the texts, too."""
    instruction: str | None
    """What relevance means, instead of the model's own instruction."""
    max_tokens_per_doc: int | None
    """Cut longer documents."""
    priority: int | None
    """Requests of a lower priority number run first."""
    cache_salt: str | None
    """Requests with different salts share no cached prefix."""


RANK = (ModelFields, RankFields)
